"""Parameters of a run, parsed from its script arguments, for comparing runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional, Union

_OPTION = re.compile(r"--?([A-Za-z_][\w.\-/]*)(?:=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"\+{0,2}([A-Za-z_][\w.\-/]*)=(.*)", re.DOTALL)
# not `007`, which is a name, and not 20 digits, which are an id that a float cannot hold
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|-?\.\d+(?:[eE][+-]?\d{1,3})?")


def parse_parameters(arguments: Sequence[str]) -> dict[str, str]:
    """Parse ``--lr 0.1``, ``--lr=0.1``, ``-n 5``, ``--flag`` (true) and ``model.lr=0.1``; the last value wins."""
    parameters: dict[str, str] = {}
    # file names may contain bytes that are not valid text; the database accepts only text, so escape them
    words = [str(word).encode("utf-8", "backslashreplace").decode() for word in arguments]
    for index, word in enumerate(words):
        option = _OPTION.fullmatch(word)
        if option is None:
            assignment = _ASSIGNMENT.fullmatch(word)
            is_option_value = index > 0 and _expects_value(words[index - 1])
            if assignment is not None and not is_option_value:
                parameters[assignment[1]] = assignment[2]
            continue
        if option[2] is not None:
            parameters[option[1]] = option[2]
            continue
        next_word = words[index + 1] if index + 1 < len(words) else None
        parameters[option[1]] = next_word if next_word is not None and _is_value(next_word) else "true"
    return parameters


def parse_number(text: Optional[str]) -> Union[int, float, None]:
    """The number that ``text`` represents, or None."""
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _expects_value(word: str) -> bool:
    option = _OPTION.fullmatch(word)
    return option is not None and option[2] is None


def _is_value(word: str) -> bool:
    """True unless the word is another option; ``-1`` is a value."""
    return _OPTION.fullmatch(word) is None and word != "--"
