"""Ignore files, with the exact semantics of git's ``.gitignore``.

In each folder, the rules of ``.gitignore`` apply first, followed by those of ``.runyardignore``. If the root has an
``.amlignore``, ``.amlignore`` files replace all ``.gitignore`` files. The last matching rule decides, deeper files take
precedence, and files in an excluded folder cannot be included again.
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

# always excluded, independent of ignore files
EXCLUDED_FOLDERS = frozenset((b".git", b"__pycache__", b".ipynb_checkpoints"))
EXCLUDED_SUFFIX = b".pyc"


class Rule(NamedTuple):
    pattern: bytes  # without "!", trailing slash, and leading slash
    negated: bool
    only_folders: bool
    anchored: bool  # matches the path relative to its ignore file; otherwise only the name
    is_runyard: bool  # from a .runyardignore: only there a "!" includes files that look like secrets


class Rules:
    """The rules of one folder, in order."""

    def __init__(self, folder: bytes, rules: Sequence[Rule]) -> None:
        self._prefix_length = len(folder)  # `folder` is b"" or ends with a slash
        self._rules = rules
        self._for_folders = _Matcher(rules)
        self._for_files = _Matcher([None if rule.only_folders else rule for rule in rules])

    def last_match(self, path: bytes, name: bytes, is_folder: bool) -> Optional[Rule]:
        matcher = self._for_folders if is_folder else self._for_files
        order = matcher.last(name, path, self._prefix_length)
        return None if order < 0 else self._rules[order]


def read_rules(root: bytes, folder: bytes, names: Iterable[bytes]) -> Optional[Rules]:
    """Read these ignore files of ``root/folder``, in order; None if they contain no rules."""
    rules: list[Rule] = []
    for name in names:
        rules += parse(_read(root + b"/" + folder + name), is_runyard=name == RUNYARD_IGNORE)
    return Rules(folder, rules) if rules else None


def decide(chain: tuple[Rules, ...], path: bytes, name: bytes, is_folder: bool) -> Optional[Rule]:
    """The rule that decides about ``path``. The chain begins with the rules of the deepest folder."""
    for rules in chain:
        rule = rules.last_match(path, name, is_folder)
        if rule is not None:
            return rule
    return None


def parse(content: bytes, *, is_runyard: bool = False) -> list[Rule]:
    rules = []
    for line in content[3 if content.startswith(b"\xef\xbb\xbf") else 0 :].split(b"\n"):
        if line.startswith(b"#"):
            continue
        pattern = _strip_trailing_spaces((line[:-1] if line.endswith(b"\r") else line).split(b"\0", 1)[0])
        negated = pattern.startswith(b"!")
        pattern = pattern[1:] if negated else pattern
        only_folders = pattern.endswith(b"/")
        pattern = pattern[:-1] if only_folders else pattern
        anchored = b"/" in pattern
        pattern = pattern[1:] if pattern.startswith(b"/") else pattern
        if pattern:
            rules.append(Rule(pattern, negated, only_folders, anchored, is_runyard))
    return rules


class _Matcher:
    """Matches many rules together, with dictionaries and one regular expression instead of a loop per file."""

    def __init__(self, rules: Sequence[Optional[Rule]]) -> None:
        self._names: dict[bytes, int] = {}
        self._paths: dict[bytes, int] = {}
        self._suffixes: dict[bytes, int] = {}
        name_globs: list[tuple[int, bytes]] = []
        path_globs: list[tuple[int, bytes]] = []
        for order, rule in enumerate(rules):
            if rule is None:
                continue
            if literal_length(rule.pattern) == len(rule.pattern):
                (self._paths if rule.anchored else self._names)[rule.pattern] = order
            elif not rule.anchored and _is_suffix(rule.pattern):
                self._suffixes[rule.pattern[1:]] = order
            else:
                regex = translate(rule.pattern)
                if regex is not None:
                    (path_globs if rule.anchored else name_globs).append((order, regex))
        self._any_suffix = tuple(self._suffixes)
        self._name_glob, self._name_orders = _alternatives(name_globs)
        self._path_glob, self._path_orders = _alternatives(path_globs)
        self._has_paths = bool(self._paths or path_globs)

    def last(self, name: bytes, path: bytes, prefix_length: int) -> int:
        """The index of the last matching rule; -1 if none matches."""
        order = self._names.get(name, -1)
        if self._any_suffix and name.endswith(self._any_suffix):
            order = max(order, max(index for suffix, index in self._suffixes.items() if name.endswith(suffix)))
        if self._name_glob is not None:
            match = self._name_glob.fullmatch(name)
            if match is not None:
                order = max(order, self._name_orders[(match.lastindex or 1) - 1])
        if self._has_paths:
            relative = path[prefix_length:]
            order = max(order, self._paths.get(relative, -1))
            if self._path_glob is not None:
                match = self._path_glob.fullmatch(relative)
                if match is not None:
                    order = max(order, self._path_orders[(match.lastindex or 1) - 1])
        return order


def _alternatives(globs: list[tuple[int, bytes]]) -> tuple[Optional[re.Pattern[bytes]], list[int]]:
    if not globs:
        return None, []
    globs = globs[::-1]  # reversed: alternatives are tried in order, so the first match is the last rule
    joined = b"|".join(b"(" + regex + b")" for _, regex in globs)
    return re.compile(joined, re.DOTALL), [order for order, _ in globs]


def _is_suffix(pattern: bytes) -> bool:
    return pattern.startswith(b"*") and literal_length(pattern[1:]) == len(pattern) - 1


def _strip_trailing_spaces(line: bytes) -> bytes:
    """Remove trailing spaces that are not escaped by a backslash. Tabs are kept."""
    end = position = 0
    while position < len(line):
        if line[position : position + 1] == b"\\":
            if position + 1 == len(line):
                return line
            position += 1
            end = position + 1
        elif line[position : position + 1] != b" ":
            end = position + 1
        position += 1
    return line[:end]


def _read(path: bytes) -> bytes:
    try:
        # does not follow links: git does not either, and a link could lead outside the folder
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            return os.read(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return b""
        raise SnapshotException(
            f"cannot read the ignore file {os.fsdecode(path)}: {error.strerror}",
            hint="make it readable (chmod u+r) or remove it",
            path=os.fsdecode(path),
        ) from error
