"""The contract of a sampler: it proposes parameter values for each child run and learns from results."""

from __future__ import annotations

from runyard.spec.space import Point


class Sampler:
    """Proposes one point per child run. Calling ``ask`` again with the same number is safe."""

    def ready(self, number: int) -> bool:
        """True if child ``number`` can be proposed now; False if other children must end first."""
        return True

    def ask(self, number: int) -> Point | None:
        """The parameter values of child ``number``; None if the space is exhausted."""
        raise NotImplementedError

    def parent(self, number: int) -> int | None:
        """The child whose outputs child ``number`` resumes from, if any."""
        return None

    def restore(self, number: int, point: Point) -> None:
        """Record a child that was proposed before a restart or is resumed from another sweep."""

    def tell(self, number: int, value: float | None, completed: bool = True) -> None:
        """Record a child's result. Greater is better; None if the child has no usable result."""

    def stage(self, number: int) -> str:
        """Progress at child ``number`` for display, such as a generation; empty if the number is enough."""
        return ""
