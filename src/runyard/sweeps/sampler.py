"""The contract of a sampling: which values the next child gets, and from whose outputs it goes on."""

from __future__ import annotations

from runyard.spec.space import Point


class Sampler:
    """It can be asked again for a number that it was asked for before."""

    def ready(self, number: int) -> bool:
        """Whether the values of child ``number`` can be told, or others have to end first."""
        return True

    def propose(self, number: int) -> Point | None:
        """The values of child ``number``; None: there are no more to try."""
        raise NotImplementedError

    def goes_on_from(self, number: int) -> int | None:
        """Of a child that was proposed: the one whose outputs it finds."""
        return None

    def took(self, number: int, point: Point) -> None:
        """A child that was proposed by a former yard, or is resumed, has these values."""

    def learn(self, number: int, value: float | None, completed: bool = True) -> None:
        """How a child went, greater is better; None: it brought nothing to learn from."""

    def stage(self, number: int) -> str:
        """How far it is with child ``number``, in words; "" where the number says it."""
        return ""
