"""SHA-256 of files and texts, as hexadecimal digests."""

from __future__ import annotations

import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

CHUNK_BYTES = 1 << 20


def of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def of_file(path: os.PathLike[str] | str) -> str:
    """Digest of a file's content. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return of_descriptor(descriptor)
    finally:
        os.close(descriptor)


def of_descriptor(descriptor: int, on_chunk: Optional[Callable[[memoryview], object]] = None) -> str:
    """Digest of everything from the current position to the end of the file.

    Args:
        descriptor: An open file.
        on_chunk: Called with each piece that was read, for example to copy it; may raise to stop.
    """
    hashing = hashlib.sha256()
    buffer = memoryview(bytearray(min(CHUNK_BYTES, os.fstat(descriptor).st_size + 1)))
    while size := os.readv(descriptor, [buffer]):
        hashing.update(buffer[:size])
        if on_chunk is not None:
            on_chunk(buffer[:size])
    return hashing.hexdigest()
