"""Exports a snapshot as a zip file."""

from __future__ import annotations

import re
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path

from runyard.snapshots.manifest import Entry, Manifest, encode

_SURROGATE = re.compile("[\udc80-\udcff]")


def write_zip(path: Path, manifest: Manifest, contents: Iterable[tuple[Entry, Iterable[bytes]]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for entry in manifest.entries:
            if entry.kind == "dir":
                archive.writestr(_info(entry.path + "/", stat.S_IFDIR | 0o755), b"")
            elif entry.kind == "link":
                archive.writestr(_info(entry.path, stat.S_IFLNK | 0o777), encode(entry.target))
        for entry, chunks in contents:
            info = _info(entry.path, stat.S_IFREG | (0o755 if entry.executable else 0o644))
            info.file_size = entry.size
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as file:
                for chunk in chunks:
                    file.write(chunk)


def _info(name: str, mode: int) -> zipfile.ZipInfo:
    # a fixed date: the same snapshot produces the same bytes
    info = zipfile.ZipInfo(_SURROGATE.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", name), (1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix: other systems ignore the modes
    info.external_attr = mode << 16
    return info
