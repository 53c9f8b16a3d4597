"""The words after the interpreter, and ``$VARIABLES`` in them, expanded on the node, where the values are known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runyard.spec.run import RunSpec

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def script_words(spec: RunSpec) -> tuple[str, ...]:
    """The script and its arguments."""
    # an interpreter would read a name such as `-c.py` as one of its own options
    return (f"./{spec.script}" if spec.script.startswith("-") else spec.script, *spec.arguments)


def expand(arguments: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """A variable that is not known stays as it was written: it may be a price, a pattern or a password."""

    def value(found: re.Match[str]) -> str:
        return variables.get(found.group(1) or found.group(2), found.group(0))

    # one pass, so a value that itself holds a dollar sign arrives as it is
    return tuple(_VARIABLE.sub(value, argument) if "$" in argument else argument for argument in arguments)
