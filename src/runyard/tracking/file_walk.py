"""Which files of a folder are worth keeping: a walk that neither leaves the folder nor runs in circles."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Found:
    name: str  # relative to the folder, '/' between the parts
    source: Path
    linked: bool  # reached through a symbolic link


def walk(folder: Path) -> tuple[list[Found], list[str]]:
    """The regular files below ``folder``, and a warning for everything that was left out."""
    found: list[Found] = []
    warnings: list[str] = []
    top = os.path.realpath(folder)
    waiting = [(folder, "", False)]
    while waiting:
        here, name, linked = waiting.pop()
        try:
            entries = list(os.scandir(here))
        except OSError as error:
            warnings.append(f"{name or here} was left out: {error.strerror}")
            continue
        for entry in entries:
            path = f"{name}/{_readable(entry.name)}" if name else _readable(entry.name)
            reason = ""
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                if target != top and not target.startswith(top + os.sep):
                    reason = "it is a link that leads out of the folder"
                elif Path(target).is_dir():
                    if linked or _holds(target, entry.path):
                        reason = "it is a link to a folder that would be kept again and again"
                    else:
                        waiting.append((Path(entry.path), path, True))
                elif Path(target).is_file():
                    found.append(Found(path, Path(target), True))
                else:
                    reason = "it is a link to nothing"
            elif entry.is_dir():
                waiting.append((Path(entry.path), path, linked))
            elif entry.is_file():
                found.append(Found(path, Path(entry.path), linked))
            else:
                reason = f"it is a {_special(entry)}"
            if reason:
                warnings.append(f"{path} was left out: {reason}")
    return found, warnings


def _holds(folder: str, path: str) -> bool:
    return (os.path.realpath(Path(path).parent) + os.sep).startswith(folder + os.sep)


def _readable(name: str) -> str:
    """File names are bytes; those that are no text are shown with their odd bytes as ``\\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _special(entry: os.DirEntry[str]) -> str:
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISSOCK(mode):
        return "socket"
    return "pipe" if stat.S_ISFIFO(mode) else "device"
