"""Configuration objects with fixed attribute names: setting an unknown one is an error, at any level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runyard.errors import UserErrorException
from runyard.sdk.core import validation


class Section:
    """Allows the attributes that the constructor set. ``_types`` maps some of them to the types they accept."""

    _types: ClassVar[dict[str, tuple[type, ...]]] = {}

    def _freeze_names(self) -> None:
        """Called last by a constructor: from here on, no new attributes can be added."""
        self.__dict__["_frozen"] = True

    # hidden from the type checker, which would otherwise allow any name
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if self.__dict__.get("_frozen") and not hasattr(self, name):
                settings = sorted(self._settings())
                raise AttributeError(
                    f"{type(self).__name__} has no setting {name!r}: "
                    f"{validation.did_you_mean(name, settings)}its settings are {', '.join(settings)}"
                )
            types = self._types.get(name)
            if types and not _has_type(value, types):
                names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in types)
                raise validation.invalid(f"{type(self).__name__}.{name}", value, names, error=UserErrorException)
            object.__setattr__(self, name, value)

    def _settings(self) -> set[str]:
        properties = {n for kind in type(self).__mro__ for n, v in vars(kind).items() if isinstance(v, property)}
        return {name for name in {*vars(self), *properties} if not name.startswith("_")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in sorted(self._settings()))})"


def _has_type(value: Any, types: tuple[type, ...]) -> bool:
    # True is an int in Python, but not a valid node count
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types)
