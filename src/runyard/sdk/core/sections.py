"""Settings with fixed names: setting one that does not exist is an error, at any level of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runyard.errors import UserErrorException
from runyard.sdk.core import validation


class Section:
    """Its settings are the attributes that the constructor made; ``_takes`` names the types of the checked ones."""

    _takes: ClassVar[dict[str, tuple[type, ...]]] = {}

    def _complete(self) -> None:
        """Called last by a constructor: from here on the names are fixed."""
        self.__dict__["_fixed"] = True

    # hidden from the type checker, which would otherwise allow any name
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if self.__dict__.get("_fixed") and not hasattr(self, name):
                settings = sorted(self._settings())
                raise AttributeError(
                    f"{type(self).__name__} has no setting {name!r}: "
                    f"{validation.nearest(name, settings)}its settings are {', '.join(settings)}"
                )
            takes = self._takes.get(name)
            if takes and not _is_a(value, takes):
                names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in takes)
                raise validation.wrong(f"{type(self).__name__}.{name}", value, names, error=UserErrorException)
            object.__setattr__(self, name, value)

    def _settings(self) -> set[str]:
        properties = {n for kind in type(self).__mro__ for n, v in vars(kind).items() if isinstance(v, property)}
        return {name for name in {*vars(self), *properties} if not name.startswith("_")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in sorted(self._settings()))})"


def _is_a(value: Any, takes: tuple[type, ...]) -> bool:
    # True is an int to Python; a node count is not
    return isinstance(value, takes) and (not isinstance(value, bool) or bool in takes)
