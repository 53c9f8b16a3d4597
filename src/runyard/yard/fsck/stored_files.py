"""Checks the stored files of runs and models: each content is named by its hash."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from runyard import clock
from runyard.posix import sha256
from runyard.tracking.artifacts import INCOMING_PREFIX
from runyard.yard.fsck.report import Report

_MODEL = "model:"
_NEW_S = 3600.0  # a running yard stores a content some time before it records its owner
_RERUN = "restore the file from a backup of the home folder; storing the same content again repairs it, too"


def check(root: Path, connection: sqlite3.Connection, report: Report, is_running: bool) -> None:
    contents = check_contents(root, report)
    owners: dict[str, list[tuple[str, str]]] = defaultdict(list)
    sizes: dict[str, int] = {}
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for owner, path, digest, size in connection.execute("SELECT run_id, path, digest, size FROM artifacts"):
        owners[digest].append((owner, path))
        files[owner].append((path, digest))
        sizes[digest] = size
    for digest, users in owners.items():
        problem = contents.get(digest, "the content is missing")
        if not problem and _content(root, digest).stat().st_size != sizes[digest]:
            problem = "the content has another size than was stored"
        for owner, path in users if problem else ():
            report.damage(_subject(owner, path), f"{problem} ({_content(root, digest)})", _RERUN)
    for digest, problem in contents.items():
        if problem and digest not in owners:
            report.note(str(_content(root, digest)), f"{problem}; no run or model has it", "remove the file")
    _note_unreferenced(root, contents, owners, report, is_running)
    _check_models(connection, files, report)


def check_contents(root: Path, report: Report) -> dict[str, str]:
    """Map the digest of each content to its problem; empty for an intact one."""
    report.begin("stored files")
    problems: dict[str, str] = {}
    for digest, path in _contents(root):
        try:
            size = path.stat().st_size
            is_intact = report.quick or sha256.of_file(path) == digest
            problems[digest] = "" if is_intact else "the content is damaged"
        except OSError as error:
            size, problems[digest] = 0, f"the content cannot be read: {error.strerror}"
        report.checked(size)
    return problems


def _contents(root: Path) -> Iterator[tuple[str, Path]]:
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.is_dir() and len(folder.name) == 2:
            for name in sorted(os.listdir(folder)):  # noqa: PTH208 - there may be a million files
                yield folder.name + name, folder / name


def _content(root: Path, digest: str) -> Path:
    return root / digest[:2] / digest[2:]


def _subject(owner: str, path: str) -> str:
    if owner.startswith(_MODEL):
        return f"model {owner.removeprefix(_MODEL)}: {path}"
    return f"run {owner}: {path}"


def _note_unreferenced(
    root: Path, contents: dict[str, str], owners: dict[str, list[tuple[str, str]]], report: Report, is_running: bool
) -> None:
    count = size = 0
    for digest in contents.keys() - owners.keys():
        status = _content(root, digest).stat()
        if not (is_running and clock.now() - status.st_ctime < _NEW_S):
            count += 1
            size += status.st_size
    if count:
        report.note(
            str(root),
            f"{count:,} stored contents ({size / 1e6:,.1f} MB) belong to no run or model",
            "harmless: they remain of files that were removed or replaced",
        )
    partial = [] if is_running else sorted(root.glob(f"{INCOMING_PREFIX}*"))
    if partial:
        report.note(str(root), f"{len(partial):,} incomplete files of a killed yard", "the next yard removes them")


def _check_models(connection: sqlite3.Connection, files: dict[str, list[tuple[str, str]]], report: Report) -> None:
    report.begin("models")
    for name, version, digest in connection.execute("SELECT name, version, digest FROM models ORDER BY name, version"):
        text = "".join(f"{content}  {path}\n" for path, content in sorted(files[f"{_MODEL}{name}:{version}"]))
        if hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != digest:
            report.damage(
                f"model {name}:{version}",
                "its files are not those that were registered",
                "register the model again from its run",
            )
        report.checked()
