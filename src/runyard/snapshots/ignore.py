"""Which files belong to a snapshot: ignore files, read exactly as git reads a ``.gitignore``.

At the root and in every folder below it the rules are those of ``.gitignore`` (or of ``.amlignore``, when the root has
one: then no ``.gitignore`` counts), followed by those of ``.runyardignore``. The last rule that matches decides, a
deeper file beats a higher one, and nothing inside an excluded folder can come back.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Optional

from runyard.errors import SnapshotException
from runyard.snapshots.wildmatch import literal_length, translate

RUNYARD_IGNORE = b".runyardignore"
AML_IGNORE = b".amlignore"
GIT_IGNORE = b".gitignore"

# never part of anybody's code, whatever the ignore files say
NEVER_FOLDERS = frozenset((b".git", b"__pycache__", b".ipynb_checkpoints"))
NEVER_SUFFIX = b".pyc"


class Rule(NamedTuple):
    pattern: bytes  # without "!", without the slash at its end, and without a slash at its start when `anchored`
    negated: bool
    only_folders: bool
    anchored: bool  # matches the path below its ignore file; otherwise the name alone
    ours: bool  # from a .runyardignore: only there a "!" lets a file through that looks like a secret


class Rules:
    """The rules of one folder, in their order."""

    def __init__(self, folder: bytes, rules: Sequence[Rule]) -> None:
        self._skip = len(folder)  # `folder` is b"" or ends with a slash
        self._rules = rules
        self._for_folders = _Matcher(rules)
        self._for_files = _Matcher([None if rule.only_folders else rule for rule in rules])

    def last_match(self, path: bytes, name: bytes, is_folder: bool) -> Optional[Rule]:
        matcher = self._for_folders if is_folder else self._for_files
        order = matcher.last(name, path, self._skip)
        return None if order < 0 else self._rules[order]


def read_rules(root: bytes, folder: bytes, names: Iterable[bytes]) -> Optional[Rules]:
    """The rules in those ignore files of ``root/folder``, later files after earlier ones; None if there are none."""
    rules: list[Rule] = []
    for name in names:
        rules += parse(_content(root + b"/" + folder + name), ours=name == RUNYARD_IGNORE)
    return Rules(folder, rules) if rules else None


def decide(chain: tuple[Rules, ...], path: bytes, name: bytes, is_folder: bool) -> Optional[Rule]:
    """The rule that decides about ``path``; ``chain`` has the deepest folder's rules first."""
    for rules in chain:
        rule = rules.last_match(path, name, is_folder)
        if rule is not None:
            return rule
    return None


def parse(content: bytes, *, ours: bool = False) -> list[Rule]:
    rules = []
    for line in content[3 if content.startswith(b"\xef\xbb\xbf") else 0 :].split(b"\n"):
        if line.startswith(b"#"):
            continue
        pattern = _without_trailing_spaces((line[:-1] if line.endswith(b"\r") else line).split(b"\0", 1)[0])
        negated = pattern.startswith(b"!")
        pattern = pattern[1:] if negated else pattern
        only_folders = pattern.endswith(b"/")
        pattern = pattern[:-1] if only_folders else pattern
        anchored = b"/" in pattern
        pattern = pattern[1:] if pattern.startswith(b"/") else pattern
        if pattern:
            rules.append(Rule(pattern, negated, only_folders, anchored, ours))
    return rules


class _Matcher:
    """Many rules tried at once: sets and one regular expression instead of a loop over rules for each file."""

    def __init__(self, rules: Sequence[Optional[Rule]]) -> None:
        self._names: dict[bytes, int] = {}
        self._paths: dict[bytes, int] = {}
        self._endings: dict[bytes, int] = {}
        name_globs: list[tuple[int, bytes]] = []
        path_globs: list[tuple[int, bytes]] = []
        for order, rule in enumerate(rules):
            if rule is None:
                continue
            if literal_length(rule.pattern) == len(rule.pattern):
                (self._paths if rule.anchored else self._names)[rule.pattern] = order
            elif not rule.anchored and _is_ending(rule.pattern):
                self._endings[rule.pattern[1:]] = order
            else:
                regex = translate(rule.pattern)
                if regex is not None:
                    (path_globs if rule.anchored else name_globs).append((order, regex))
        self._any_ending = tuple(self._endings)
        self._name_glob, self._name_orders = _either(name_globs)
        self._path_glob, self._path_orders = _either(path_globs)
        self._has_paths = bool(self._paths or path_globs)

    def last(self, name: bytes, path: bytes, skip: int) -> int:
        order = self._names.get(name, -1)
        if self._any_ending and name.endswith(self._any_ending):
            order = max(order, max(at for ending, at in self._endings.items() if name.endswith(ending)))
        if self._name_glob is not None:
            found = self._name_glob.fullmatch(name)
            if found is not None:
                order = max(order, self._name_orders[(found.lastindex or 1) - 1])
        if self._has_paths:
            below = path[skip:]
            order = max(order, self._paths.get(below, -1))
            if self._path_glob is not None:
                found = self._path_glob.fullmatch(below)
                if found is not None:
                    order = max(order, self._path_orders[(found.lastindex or 1) - 1])
        return order


def _either(globs: list[tuple[int, bytes]]) -> tuple[Optional[re.Pattern[bytes]], list[int]]:
    if not globs:
        return None, []
    globs = globs[::-1]  # the last rule first: alternatives are tried in order, so the first that fits is the last rule
    joined = b"|".join(b"(" + regex + b")" for _, regex in globs)
    return re.compile(joined, re.DOTALL), [order for order, _ in globs]


def _is_ending(pattern: bytes) -> bool:
    return pattern.startswith(b"*") and literal_length(pattern[1:]) == len(pattern) - 1


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at the end go, unless a backslash keeps one. Tabs stay."""
    end = at = 0
    while at < len(line):
        if line[at : at + 1] == b"\\":
            if at + 1 == len(line):
                return line
            at += 1
            end = at + 1
        elif line[at : at + 1] != b" ":
            end = at + 1
        at += 1
    return line[:end]


def _content(path: bytes) -> bytes:
    try:
        # not through a link: git does not follow one either, and it could lead outside the folder
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(descriptor)
            return os.read(descriptor, about.st_size) if stat.S_ISREG(about.st_mode) else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return b""
        raise SnapshotException(
            f"the ignore file {os.fsdecode(path)} cannot be read: {error.strerror}",
            hint="make it readable (chmod u+r) or remove it",
            path=os.fsdecode(path),
        ) from error
