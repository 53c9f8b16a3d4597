"""Lists the files of a folder to store, without leaving the folder or following loops of links."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileEntry:
    name: str  # relative to the folder, separated by '/'
    source: Path
    via_link: bool  # reached through a symbolic link


def walk(folder: Path) -> tuple[list[FileEntry], list[str]]:
    """The regular files below ``folder``, and a warning for every other entry."""
    files: list[FileEntry] = []
    warnings: list[str] = []
    root = os.path.realpath(folder)
    pending = [(folder, "", False)]
    while pending:
        current, name, via_link = pending.pop()
        try:
            entries = list(os.scandir(current))
        except OSError as error:
            warnings.append(f"{name or current} was left out: {error.strerror}")
            continue
        for entry in entries:
            path = f"{name}/{decode_name(entry.name)}" if name else decode_name(entry.name)
            reason = ""
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                if target != root and not target.startswith(root + os.sep):
                    reason = "it is a link that leads out of the folder"
                elif Path(target).is_dir():
                    if via_link or _contains(target, entry.path):
                        reason = "it is a link to a folder that contains it"
                    else:
                        pending.append((Path(entry.path), path, True))
                elif Path(target).is_file():
                    files.append(FileEntry(path, Path(target), True))
                else:
                    reason = "it is a dangling link"
            elif entry.is_dir():
                pending.append((Path(entry.path), path, via_link))
            elif entry.is_file():
                files.append(FileEntry(path, Path(entry.path), via_link))
            else:
                reason = f"it is a {_special(entry)}"
            if reason:
                warnings.append(f"{path} was left out: {reason}")
    return files, warnings


def decode_name(name: str) -> str:
    """Convert a file name to text; invalid UTF-8 becomes ``\\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _contains(folder: str, path: str) -> bool:
    return (os.path.realpath(Path(path).parent) + os.sep).startswith(folder + os.sep)


def _special(entry: os.DirEntry[str]) -> str:
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISSOCK(mode):
        return "socket"
    return "pipe" if stat.S_ISFIFO(mode) else "device"
