"""The model folder of a scoring script: azureml-models/<name>/<version>/<registered files>."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from runyard.models.registry import Models
from runyard.posix.atomic_write import create_folder
from runyard.tracking.content_check import check_content

FOLDER = "azureml-models"
_FICLONE = 0x40049409  # from linux/fs.h: the files share their blocks until one of them is written to


def create_model_folder(models: Models, versions: Sequence[tuple[str, int]], parent: Path) -> Path:
    """Copy the files of models into ``parent``; existing versions are kept.

    The files are copies, because a scoring script may write to them and the stored content is shared.

    Returns:
        The value of AZUREML_MODEL_DIR: the folder of the only model, or that of all models.
    """
    root = parent / FOLDER
    for name, version in versions:
        folder = root / name / str(version)
        if folder.is_dir():
            continue
        with create_folder(folder) as draft:
            for file in models.files(name, version):
                target = draft / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                source = models.source_of(name, version, file.path)
                check_content(source.path, file.digest, f"{name}:{version}/{file.path}")
                _copy(source.path, target)
    return root / versions[0][0] / str(versions[0][1]) if len(versions) == 1 else root


def _copy(source_path: Path, target_path: Path) -> None:
    with open(source_path, "rb") as source, open(target_path, "wb") as target:
        try:
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
            return
        except OSError:  # the file system cannot share blocks
            pass
        size = os.fstat(source.fileno()).st_size
        copied = 0
        while copied < size:
            count = os.sendfile(target.fileno(), source.fileno(), copied, size - copied)
            if not count:
                break
            copied += count
