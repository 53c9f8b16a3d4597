"""Compares environments with their records: the metadata of Runyard, and the file lists of the packages."""

from __future__ import annotations

import base64
import csv
import os
from pathlib import Path

from runyard.environments import cache
from runyard.environments.horovod import wheel_cache
from runyard.posix import sha256
from runyard.yard.fsck.report import Report

_MAX_NAMED = 3


def check(root: Path, report: Report) -> None:
    report.begin("environments")
    complete = cache.list_environments(root)
    for info in complete:
        problems = _problems(info.path, report)
        if problems:
            named = "; ".join(problems[:_MAX_NAMED])
            more = f"; {len(problems) - _MAX_NAMED:,} more" if len(problems) > _MAX_NAMED else ""
            report.damage(
                f"environment {info.key}",
                named + more,
                f"remove it with `runyard envs prune {info.key}`; the next run builds it again",
            )
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        is_environment = folder.is_dir() and "." not in folder.name and folder.name != wheel_cache.FOLDER
        if is_environment and folder.name not in {info.key for info in complete}:
            report.damage(f"environment {folder.name}", "its record is missing or damaged", f"rm -r {folder}")


def _problems(folder: Path, report: Report) -> list[str]:
    report.checked()
    problems = []
    # an environment over a container image has only packages
    if (folder / "bin").is_dir() and not os.access(folder / "bin" / "python", os.X_OK):
        problems.append("its interpreter is missing")
    is_conda = (folder / "conda-meta").is_dir()
    for record in sorted(folder.glob("**/*.dist-info/RECORD")):
        # conda writes the path of the environment into files after their hashes were recorded
        problems += _changed_files(record, report, compare_hashes=not (report.quick or is_conda))
    return problems


def _changed_files(record: Path, report: Report, *, compare_hashes: bool) -> list[str]:
    problems = []
    site_packages = record.parent.parent
    try:
        with open(record, newline="", encoding="utf-8", errors="surrogateescape") as file:
            rows = [row for row in csv.reader(file) if len(row) == 3]
    except OSError as error:
        return [f"{record}: {error.strerror}"]
    for name, expected, _ in rows:
        if name.endswith((".pyc", "/RECORD")) or "__pycache__" in name:
            continue
        path = site_packages / name
        try:
            size = path.stat().st_size
            is_changed = compare_hashes and expected.startswith("sha256=") and _record_hash(path) != expected
        except OSError:
            problems.append(f"{name} is missing")
            continue
        report.checked(size)
        if is_changed:
            problems.append(f"{name} was changed")
    return problems


def _record_hash(path: Path) -> str:
    """The hash in the form of a RECORD file."""
    digest = bytes.fromhex(sha256.of_file(path))
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
