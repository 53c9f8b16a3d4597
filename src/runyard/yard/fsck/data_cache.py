"""Checks the cache of datastore contents: each is named by its hash, and trees consist of links to them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from runyard.posix import sha256
from runyard.yard.fsck.report import Report


def check(root: Path, report: Report) -> None:
    report.begin("data cache")
    for folder in sorted((root / "content").iterdir()) if (root / "content").is_dir() else ():
        for path in sorted(folder.iterdir()):
            try:
                size = path.stat().st_size
                is_intact = report.quick or sha256.of_file(path) == path.name
            except FileNotFoundError:  # evicted since
                continue
            report.checked(size)
            if not is_intact:
                report.damage(
                    str(path), "the cached content is damaged", "remove the file; the next run downloads it again"
                )
    for record in sorted((root / "trees").glob("*.json")):
        report.checked()
        tree = record.with_suffix("")
        if not tree.is_dir():
            continue  # evicted, or not created yet
        try:
            expected = int(json.loads(record.read_bytes())["files"])
        except (OSError, ValueError, KeyError, TypeError):
            report.damage(str(record), "the record of a cached folder is damaged", f"rm -r {record} {tree}")
            continue
        count = sum(len(names) for _, _, names in os.walk(tree))
        if count != expected:
            report.damage(
                str(tree),
                f"the cached folder has {count:,} of {expected:,} files",
                "the next run that uses it completes it",
            )
