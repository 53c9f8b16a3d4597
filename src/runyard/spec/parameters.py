"""The parameters of a run as people compare them: what its script's arguments say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional, Union

_OPTION = re.compile(r"--?([A-Za-z_][\w.\-/]*)(?:=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(r"\+{0,2}([A-Za-z_][\w.\-/]*)=(.*)", re.DOTALL)
# as a number is written by people; `007` is a name, and 20 digits are an id that no float could hold
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|-?\.\d+(?:[eE][+-]?\d{1,3})?")


def parameters_of(arguments: Sequence[str]) -> dict[str, str]:
    """``--lr 0.1``, ``--lr=0.1``, ``-n 5``, ``--flag`` (true) and ``model.lr=0.1``; of the same name the last one."""
    found: dict[str, str] = {}
    # bytes that are no text, as file names may have, are shown by their numbers: a database takes only text
    words = [str(word).encode("utf-8", "backslashreplace").decode() for word in arguments]
    for place, word in enumerate(words):
        option = _OPTION.fullmatch(word)
        if option is None:
            assignment = _ASSIGNMENT.fullmatch(word)
            follows_an_option = place > 0 and _is_open(words[place - 1])
            if assignment is not None and not follows_an_option:
                found[assignment[1]] = assignment[2]
            continue
        if option[2] is not None:
            found[option[1]] = option[2]
            continue
        following = words[place + 1] if place + 1 < len(words) else None
        found[option[1]] = following if following is not None and _is_value(following) else "true"
    return found


def number_in(text: Optional[str]) -> Union[int, float, None]:
    """The number that a text is, if it is one."""
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _is_open(word: str) -> bool:
    option = _OPTION.fullmatch(word)
    return option is not None and option[2] is None


def _is_value(word: str) -> bool:
    """What follows an option is its value, unless it is the next option; ``-1`` is a value."""
    return _OPTION.fullmatch(word) is None and word != "--"
