"""Git's glob language as regular expressions over bytes.

Git matches bytes, not characters (``?`` is half of an ``é``), and so does this. The corners follow what git does, which
is not always what its manual says; the test-suite compares both on generated trees.
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
    """How many leading bytes stand for themselves."""
    for position, byte in enumerate(pattern):
        if byte in _SPECIAL:
            return position
    return len(pattern)


def translate(pattern: bytes) -> Optional[bytes]:
    """The regular expression for a whole match of a relative path, or None for a pattern that can never match."""
    # git compares the literal head first and globs the rest on its own: after a head like "foo" a "**" counts as
    # standing at the start. Translating the pattern as one piece would read foo**/bar differently.
    head = literal_length(pattern)
    tail = _translate_tail(pattern[head:])
    return None if tail is None else re.escape(pattern[:head]) + tail


def _translate_tail(glob: bytes) -> Optional[bytes]:
    out = []
    at = 0
    while at < len(glob):
        byte = glob[at : at + 1]
        if byte == b"*":
            regex, at = _stars(glob, at)
        elif byte == b"?":
            regex, at = b"[^/]", at + 1
        elif byte == b"[":
            bracket = _bracket(glob, at)
            if bracket is None:
                return None
            regex, at = bracket
        elif byte == b"\\":
            if at + 1 == len(glob):
                return None
            regex, at = re.escape(glob[at + 1 : at + 2]), at + 2
        else:
            regex, at = re.escape(byte), at + 1
        out.append(regex)
    return b"".join(out)


def _stars(glob: bytes, at: int) -> tuple[bytes, int]:
    end = at
    while glob[end : end + 1] == b"*":
        end += 1
    at_start = at == 0 or glob[at - 1 : at] == b"/"
    if end - at >= 2 and at_start:
        if glob[end : end + 1] == b"/":
            return b"(?:.*/)?", end + 1
        if end == len(glob) or glob[end : end + 2] == b"\\/":
            return b".*", end
    return b"[^/]*", end


def _bracket(glob: bytes, at: int) -> Optional[tuple[bytes, int]]:
    at += 1
    negated = glob[at : at + 1] in (b"!", b"^")
    if negated:
        at += 1
    members: set[int] = set()
    previous = -1
    first = True
    while first or glob[at : at + 1] != b"]":
        first = False
        if at >= len(glob):
            return None
        byte = glob[at]
        follower = glob[at + 1 : at + 2]
        if byte == ord("\\"):
            if not follower:
                return None
            previous = follower[0]
            members.add(previous)
            at += 2
        elif byte == ord("-") and previous >= 0 and follower and follower != b"]":
            at += 1
            if glob[at] == ord("\\"):
                at += 1
                if at >= len(glob):
                    return None
            members.update(range(previous, glob[at] + 1))
            previous = -1
            at += 1
        elif byte == ord("[") and follower == b":":
            end = glob.find(b"]", at + 2)
            if end < 0:
                return None
            if end - at - 3 < 0 or glob[end - 1 : end] != b":":
                members.add(byte)
                previous = byte
                at += 1
                continue
            named = _CLASSES.get(glob[at + 2 : end - 1])
            if named is None:
                return None
            members |= named
            previous = -1
            at = end + 1
        else:
            members.add(byte)
            previous = byte
            at += 1
    if negated:
        members = set(range(1, 256)) - members
    members.discard(ord("/"))
    if not members:
        return b"(?!)", at + 1
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]", at + 1
