"""Models laid out as a scoring script finds them: azureml-models/<name>/<version>/<what was registered>."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from runyard.models.registry import Models

FOLDER = "azureml-models"
_FICLONE = 0x40049409  # of linux/fs.h: the new file shares the old one's blocks until one of them is written to


def lay_out(models: Models, chosen: Sequence[tuple[str, int]], into: Path) -> Path:
    """The value for AZUREML_MODEL_DIR: the folder of the one model, or that of all.

    A version appears whole or not at all, and one that is there stays. The files are copies: a scoring script may
    write to what it was given, and the stored content is everybody's.
    """
    for name, version in chosen:
        target = into / FOLDER / name / str(version)
        if target.is_dir():
            continue
        half = into / f".{uuid.uuid4().hex}.half"
        try:
            for file in models.files(name, version):
                place = half / file.path
                place.parent.mkdir(parents=True, exist_ok=True)
                _copy(models.path_of(name, version, file.path), place)
            target.parent.mkdir(parents=True, exist_ok=True)
            half.rename(target)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            if not target.is_dir():  # else somebody else was faster, with the same content
                raise
    top = into / FOLDER
    return top / chosen[0][0] / str(chosen[0][1]) if len(chosen) == 1 else top


def _copy(source: Path, target: Path) -> None:
    with open(source, "rb") as reading, open(target, "wb") as writing:
        try:
            fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
            return
        except OSError:  # a file system that shares no blocks
            pass
        size = os.fstat(reading.fileno()).st_size
        copied = 0
        while copied < size:
            done = os.sendfile(writing.fileno(), reading.fileno(), copied, size - copied)
            if not done:
                break
            copied += done
