"""Translates git's glob patterns to regular expressions over bytes.

Like git, this matches bytes, not characters (``?`` is half of an ``é``). Corner cases follow the behavior of git, which
differs from its manual in places; the test suite compares both on generated trees.
"""

from __future__ import annotations

import re
from typing import Optional

_SPECIAL = frozenset(b"*?[\\")
_PRINTABLE = frozenset(range(0x20, 0x7F))
_ALNUM = frozenset(byte for byte in range(128) if chr(byte).isalnum())
_CLASSES = {
    b"alnum": _ALNUM,
    b"alpha": frozenset(byte for byte in _ALNUM if chr(byte).isalpha()),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": frozenset(b"0123456789"),
    b"graph": _PRINTABLE - {0x20},
    b"lower": frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    b"print": _PRINTABLE,
    b"punct": _PRINTABLE - _ALNUM - {0x20},
    b"space": frozenset(b" \t\n\r"),
    b"upper": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}


def literal_length(pattern: bytes) -> int:
    """The number of leading bytes without special meaning."""
    for position, byte in enumerate(pattern):
        if byte in _SPECIAL:
            return position
    return len(pattern)


def translate(pattern: bytes) -> Optional[bytes]:
    """The regular expression for a full match of a relative path; None for a pattern that never matches."""
    # git compares the literal head first and matches the rest separately, so "**" after a head such as "foo" counts
    # as being at the start. Translating the pattern as a whole would give foo**/bar another meaning.
    head = literal_length(pattern)
    tail = _translate_tail(pattern[head:])
    return None if tail is None else re.escape(pattern[:head]) + tail


def _translate_tail(glob: bytes) -> Optional[bytes]:
    out = []
    position = 0
    while position < len(glob):
        byte = glob[position : position + 1]
        if byte == b"*":
            regex, position = _stars(glob, position)
        elif byte == b"?":
            regex, position = b"[^/]", position + 1
        elif byte == b"[":
            bracket = _bracket(glob, position)
            if bracket is None:
                return None
            regex, position = bracket
        elif byte == b"\\":
            if position + 1 == len(glob):
                return None
            regex, position = re.escape(glob[position + 1 : position + 2]), position + 2
        else:
            regex, position = re.escape(byte), position + 1
        out.append(regex)
    return b"".join(out)


def _stars(glob: bytes, position: int) -> tuple[bytes, int]:
    end = position
    while glob[end : end + 1] == b"*":
        end += 1
    is_at_start = position == 0 or glob[position - 1 : position] == b"/"
    if end - position >= 2 and is_at_start:
        if glob[end : end + 1] == b"/":
            return b"(?:.*/)?", end + 1
        if end == len(glob) or glob[end : end + 2] == b"\\/":
            return b".*", end
    return b"[^/]*", end


def _bracket(glob: bytes, position: int) -> Optional[tuple[bytes, int]]:
    position += 1
    negated = glob[position : position + 1] in (b"!", b"^")
    if negated:
        position += 1
    members: set[int] = set()
    previous = -1
    first = True
    while first or glob[position : position + 1] != b"]":
        first = False
        if position >= len(glob):
            return None
        byte = glob[position]
        follower = glob[position + 1 : position + 2]
        if byte == ord("\\"):
            if not follower:
                return None
            previous = follower[0]
            members.add(previous)
            position += 2
        elif byte == ord("-") and previous >= 0 and follower and follower != b"]":
            position += 1
            if glob[position] == ord("\\"):
                position += 1
                if position >= len(glob):
                    return None
            members.update(range(previous, glob[position] + 1))
            previous = -1
            position += 1
        elif byte == ord("[") and follower == b":":
            end = glob.find(b"]", position + 2)
            if end < 0:
                return None
            if end - position - 3 < 0 or glob[end - 1 : end] != b":":
                members.add(byte)
                previous = byte
                position += 1
                continue
            character_class = _CLASSES.get(glob[position + 2 : end - 1])
            if character_class is None:
                return None
            members |= character_class
            previous = -1
            position = end + 1
        else:
            members.add(byte)
            previous = byte
            position += 1
    if negated:
        members = set(range(1, 256)) - members
    members.discard(ord("/"))
    if not members:
        return b"(?!)", position + 1
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]", position + 1
