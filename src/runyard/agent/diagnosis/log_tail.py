"""The end of a log: the last lines, and the last Python traceback in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from runyard.posix.regular_file import open_regular, read_range

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
_RANK = re.compile(r"^\[rank\d+\]: ?")  # torch.distributed prefixes every line of a traceback
_ATTEMPT = re.compile(r"^--- attempt \d+: .* ---$")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class LogTail:
    lines: tuple[str, ...] = ()  # the last lines, as a terminal would show them
    traceback: str = ""
    error: str = ""  # last line of the traceback: "ValueError: bad lr"
    is_final: bool = False  # at most a few lines follow the traceback

    @property
    def last_line(self) -> str:
        return next((line for line in reversed(self.lines) if line.strip()), "").strip()


def read_log_tail(log: str, *, line_count: int = 20) -> LogTail:
    return parse_tail(read_tail(log), line_count=line_count)


def read_tail(log: str, size: int = _TAIL_BYTES) -> bytes:
    try:
        file = open_regular(log)
    except OSError:
        return b""
    try:
        return read_range(file, max(os.fstat(file).st_size - size, 0), size)
    finally:
        os.close(file)


def parse_tail(tail: bytes, *, line_count: int = 20) -> LogTail:
    lines = [_render(line) for line in tail.decode("utf-8", "replace").split("\n")]
    attempt_line = next((i for i in range(len(lines) - 1, -1, -1) if _ATTEMPT.match(lines[i])), -1)
    lines = lines[attempt_line + 1 :]  # ignore earlier attempts
    while lines and not lines[-1].strip():
        lines.pop()
    last_lines = tuple(_shorten(line) for line in lines[-line_count:])
    start, end, error = _find_traceback(lines)
    if start is None:
        return LogTail(last_lines)
    after = sum(1 for line in lines[end:] if line.strip())
    text = "\n".join(_shorten(line) for line in lines[start:end])
    return LogTail(last_lines, text[-_TRACEBACK_CHARACTERS:], _shorten(error), is_final=after <= 5)


def _find_traceback(lines: list[str]) -> tuple[Optional[int], int, str]:
    """Start, end and error line of the last traceback, including chained exceptions."""
    for header in range(len(lines) - 1, -1, -1):
        if _GROUP_HEADER.match(lines[header]):
            end = _first_index(lines, header + 1, lambda line: not line.startswith(" "))
            error = next(
                (line.strip(" |") for line in lines[header:end] if re.match(r"\s*\| [A-Za-z_][\w.]*: ", line)), ""
            )
            return _chain_start(lines, header), end, error
        if _HEADER.match(lines[header]):
            error_line = _first_index(lines, header + 1, lambda line: not line.startswith(" "))
            if error_line < len(lines) and _EXCEPTION.match(lines[error_line]):
                return _chain_start(lines, header), *_parse_error(lines, error_line)
        elif _SYNTAX.match(lines[header]):  # a syntax error in the entry script has no header
            start = header
            while start > 0 and lines[start - 1].startswith(" "):
                start -= 1
            if start < header and not (start and _HEADER.match(lines[start - 1])):
                return start, header + 1, lines[header]
    return None, 0, ""


def _parse_error(lines: list[str], start: int) -> tuple[int, str]:
    """End and first line of an error message, which may span lines up to a blank one; many lines are later output."""
    end = _first_index(lines, start, lambda line: not line.strip())
    error = lines[start]
    if any(
        line.startswith("Original Traceback") for line in lines[start:end]
    ):  # from a data loader worker: use its error
        error = next((line for line in reversed(lines[start:end]) if _EXCEPTION.match(line)), error)
    elif sum(1 for line in lines[start + 1 : end] if not line[0].isspace()) > _CONTINUATION_LINES:
        end = _first_index(lines, start + 1, lambda line: not line[:1].isspace())
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


def _first_index(lines: list[str], start: int, matches: Callable[[str], bool]) -> int:
    return next((i for i in range(start, len(lines)) if matches(lines[i])), len(lines))


def _render(line: str) -> str:
    """The line as a terminal shows it: without colors and rank prefix, and with the last state of a progress bar."""
    line = _RANK.sub("", _ESCAPES.sub("", line).rstrip("\r"))
    return _UNPRINTABLE.sub("\ufffd", line.rpartition("\r")[2])


def _shorten(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} … ({len(line)} characters)"
