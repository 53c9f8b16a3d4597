"""The last words of a script: its last lines, and the last Python traceback among them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

_TAIL_BYTES = 1_000_000
_LINE_CHARACTERS = 2_000
_TRACEBACK_CHARACTERS = 20_000
_CONTINUATION_LINES = 8

_HEADER = re.compile(r"^(?:\s*\+ Exception Group )?Traceback \(most recent call last\):")
_GROUP_HEADER = re.compile(r"^\s*\+ Exception Group Traceback")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::(?: .*)?)?$", re.DOTALL)
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ")
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RANK = re.compile(r"^\[rank\d+\]: ?")  # torch.distributed writes it before every line of a traceback
_ATTEMPT = re.compile(r"^--- attempt \d+: .* ---$")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class LastWords:
    lines: tuple[str, ...] = ()  # the last ones, as a terminal would show them
    traceback: str = ""
    error: str = ""  # the traceback's own last word: "ValueError: bad lr"
    is_final: bool = False  # hardly anything was written after that traceback

    @property
    def last_line(self) -> str:
        return next((line for line in reversed(self.lines) if line.strip()), "").strip()


def last_words(log: str, *, line_count: int = 20) -> LastWords:
    return read_words(read_tail(log), line_count=line_count)


def read_tail(log: str, size: int = _TAIL_BYTES) -> bytes:
    try:
        with open(log, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - size, 0))
            return file.read(size)
    except OSError:
        return b""


def read_words(tail: bytes, *, line_count: int = 20) -> LastWords:
    lines = [_as_shown(line) for line in tail.decode("utf-8", "replace").split("\n")]
    again = next((i for i in range(len(lines) - 1, -1, -1) if _ATTEMPT.match(lines[i])), -1)
    lines = lines[again + 1 :]  # what an earlier attempt said is not this one's last word
    while lines and not lines[-1].strip():
        lines.pop()
    shown = tuple(_shortened(line) for line in lines[-line_count:])
    start, end, error = _find_traceback(lines)
    if start is None:
        return LastWords(shown)
    after = sum(1 for line in lines[end:] if line.strip())
    text = "\n".join(_shortened(line) for line in lines[start:end])
    return LastWords(shown, text[-_TRACEBACK_CHARACTERS:], _shortened(error), is_final=after <= 5)


def _find_traceback(lines: list[str]) -> tuple[Optional[int], int, str]:
    """Where the last traceback begins and ends, and its error line. Chained exceptions belong to it."""
    for header in range(len(lines) - 1, -1, -1):
        if _GROUP_HEADER.match(lines[header]):
            end = _first(lines, header + 1, lambda line: not line.startswith(" "))
            error = next(
                (line.strip(" |") for line in lines[header:end] if re.match(r"\s*\| [A-Za-z_][\w.]*: ", line)), ""
            )
            return _chain_start(lines, header), end, error
        if _HEADER.match(lines[header]):
            at = _first(lines, header + 1, lambda line: not line.startswith(" "))
            if at < len(lines) and _EXCEPTION.match(lines[at]):
                return _chain_start(lines, header), *_error_of(lines, at)
        elif _SYNTAX.match(lines[header]):  # of the entry script itself: it comes without a header
            start = header
            while start > 0 and lines[start - 1].startswith(" "):
                start -= 1
            if start < header and not (start and _HEADER.match(lines[start - 1])):
                return start, header + 1, lines[header]
    return None, 0, ""


def _error_of(lines: list[str], at: int) -> tuple[int, str]:
    """An error's text may go on for several lines; a blank one ends it. Many plain lines are later output."""
    end = _first(lines, at, lambda line: not line.strip())
    error = lines[at]
    if any(line.startswith("Original Traceback") for line in lines[at:end]):  # a data loader's worker: its error counts
        error = next((line for line in reversed(lines[at:end]) if _EXCEPTION.match(line)), error)
    elif sum(1 for line in lines[at + 1 : end] if not line[0].isspace()) > _CONTINUATION_LINES:
        end = _first(lines, at + 1, lambda line: not line[:1].isspace())
    return end, error


def _chain_start(lines: list[str], header: int) -> int:
    while True:
        above = header - 1
        while above >= 0 and not lines[above].strip():
            above -= 1
        if above < 0 or lines[above].strip() not in _CHAINED:
            return header
        earlier = next((i for i in range(above - 1, -1, -1) if _HEADER.match(lines[i])), None)
        if earlier is None:
            return header
        header = earlier


def _first(lines: list[str], start: int, wanted: Callable[[str], bool]) -> int:
    return next((i for i in range(start, len(lines)) if wanted(lines[i])), len(lines))


def _as_shown(line: str) -> str:
    """Without colours and rank numbers; of a progress bar that redrew itself, the last state."""
    line = _RANK.sub("", _ESCAPES.sub("", line).rstrip("\r"))
    return _UNPRINTABLE.sub("\ufffd", line.rpartition("\r")[2])


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} … ({len(line)} characters)"
