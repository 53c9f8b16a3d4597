"""The arguments of the interpreter, and the expansion of ``$VARIABLES`` in them on the node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runyard.spec.run import RunSpec

VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def script_argv(spec: RunSpec) -> tuple[str, ...]:
    """The script and its arguments."""
    # an interpreter would parse a name such as `-c.py` as an option
    return (f"./{spec.script}" if spec.script.startswith("-") else spec.script, *spec.arguments)


def expand(arguments: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Expand variables. Unknown names stay unchanged: the text may be a price, a pattern or a password."""

    def value(match: re.Match[str]) -> str:
        return variables.get(match.group(1) or match.group(2), match.group(0))

    # one pass, so that a dollar sign in a value is not expanded again
    return tuple(VARIABLE.sub(value, argument) if "$" in argument else argument for argument in arguments)
