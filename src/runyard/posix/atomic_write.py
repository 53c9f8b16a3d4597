"""Atomic writes: readers see the old file or the complete new one, never a part of it.

Temporary names contain the writer's process id, so that cleaning up after a crashed process does not delete a file
that another thread of this process is still writing.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".draft"


def write_text(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write ``text`` to ``path`` atomically. Only the owner can read the file by default: it may contain secrets."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"), mode=mode)


def write_bytes(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    with replace_file(path) as draft:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:
            file.write(data)


@contextmanager
def replace_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` to write to; rename it to ``path`` on success, delete it on failure.

    Args:
        path: The file to create or replace. Its folder must exist.
        durable: Flush the content to disk before the rename, so that it survives a power failure.
    """
    draft = draft_path(path)
    try:
        yield draft
        if durable:
            flush_to_disk(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


@contextmanager
def create_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to ``path`` to fill; rename it to ``path`` on success, delete it on failure.

    If ``path`` was created by another process in the meantime, that folder is kept: use this for folders that are
    named by their content.
    """
    draft = draft_path(path)
    shutil.rmtree(draft, ignore_errors=True)  # left by a killed process with the same ids
    draft.mkdir(parents=True)
    try:
        yield draft
        try:
            draft.rename(path)
        except OSError:
            if not path.is_dir():
                raise
            shutil.rmtree(draft, ignore_errors=True)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def draft_path(path: Path) -> Path:
    """A temporary name next to ``path`` that no other thread or process uses."""
    return path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{_SUFFIX}")


def is_draft(name: str) -> bool:
    return name.endswith(_SUFFIX)


def remove_stale_drafts(folder: Path) -> None:
    """Delete the temporary files of other processes, which must have ended."""
    for draft in folder.glob(f"*{_SUFFIX}"):
        if f".{os.getpid()}." not in draft.name:
            with suppress(OSError):  # a script may have created a folder of such a name
                draft.unlink()


def flush_to_disk(path: Path) -> None:
    # without this, a power failure may keep the new name and lose the content
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
