"""Pack files: the contents of many files in one. Writing 10,000 small files takes seconds, one pack half a second.

    header   16 bytes
    blobs    concatenated, uncompressed
    index    48 bytes for each blob: sha256, offset, size
    trailer  sha256 of the index, number of blobs, offset of the index, magic

The trailer is written last, so an incomplete pack has none and is detected as damaged. The hash of every blob is
verified when it is read.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from runyard.errors import SnapshotException

CHUNK_BYTES = 1 << 20
_HEADER = b"runyard pack 1\n\0"
_MAGIC = b"ryPACK1\n"
_RECORD = struct.Struct(">32sQQ")
_TRAILER = struct.Struct(">32sQQ8s")


class BlobLocation(NamedTuple):
    offset: int
    size: int


class PackWriter:
    """Appends blobs to a new file. As a context manager, it completes the pack if the block raises no error."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._lock = threading.Lock()
        self._locations: dict[str, BlobLocation] = {}
        self._position = len(_HEADER)

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            os.close(self._file)

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(self._locations)

    def __contains__(self, digest: str) -> bool:
        return digest in self._locations

    def add_all(self, blobs: Iterable[tuple[str, memoryview]]) -> None:
        """Add complete blobs, without duplicates; thread-safe."""
        new = []
        with self._lock:
            start = self._position
            for digest, data in blobs:
                if digest not in self._locations:
                    self._locations[digest] = BlobLocation(self._position, len(data))
                    self._position += len(data)
                    new.append(data)
        if new:
            _write_all(self._file, new, start)

    @property
    def position(self) -> int:
        return self._position

    def append(self, data: memoryview) -> None:
        """Append a chunk of a blob; end the blob with `finish_blob` or `rewind`. Not thread-safe."""
        _write_all(self._file, [data], self._position)
        self._position += len(data)

    def finish_blob(self, digest: str, start: int) -> None:
        """Complete the blob that begins at ``start``; discard it if the pack has it already."""
        if digest in self._locations:
            self.rewind(start)
        else:
            self._locations[digest] = BlobLocation(start, self._position - start)

    def rewind(self, start: int) -> None:
        """Discard everything appended since ``start``."""
        self._position = start

    def _finish(self) -> None:
        index = b"".join(
            _RECORD.pack(bytes.fromhex(digest), location.offset, location.size)
            for digest, location in self._locations.items()
        )
        trailer = _TRAILER.pack(sha256(index).digest(), len(self._locations), self._position, _MAGIC)
        _write_all(self._file, [memoryview(_HEADER)], 0)
        _write_all(self._file, [memoryview(index + trailer)], self._position)
        # discarded blobs may have been longer
        os.ftruncate(self._file, self._position + len(index) + len(trailer))


class Pack:
    """A complete pack. Its index is verified here, its blobs when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb", buffering=0) as file:
                self.name, self.locations = _read_index(file.fileno(), path)
        except OSError as error:
            raise damaged_pack_error(path, error.strerror or str(error)) from error

    def open(self) -> OpenPack:
        return OpenPack(self.path)


class OpenPack:
    """Reads blobs; a context manager that keeps the file open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise damaged_pack_error(path, error.strerror or str(error)) from error

    def __enter__(self) -> OpenPack:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def read(self, digest: bytes, location: BlobLocation) -> bytes:
        data = os.pread(self._file, location.size, location.offset) if location.size <= CHUNK_BYTES else b""
        if len(data) < location.size:
            return b"".join(self.chunks(digest, location))
        if sha256(data).digest() != digest:
            raise damaged_pack_error(
                self._path, f"the hash of content {digest.hex()[:12]} is wrong", digest=digest.hex()
            )
        return data

    def chunks(self, digest: bytes, location: BlobLocation) -> Iterator[bytes]:
        """Yield the blob in chunks; a wrong hash raises after the last one."""
        hashing = sha256()
        offset, remaining = location
        while remaining:
            data = os.pread(self._file, min(remaining, CHUNK_BYTES), offset)
            if not data:
                raise damaged_pack_error(self._path, "it is cut off", digest=digest.hex())
            hashing.update(data)
            yield data
            offset += len(data)
            remaining -= len(data)
        if hashing.digest() != digest:
            raise damaged_pack_error(
                self._path, f"the hash of content {digest.hex()[:12]} is wrong", digest=digest.hex()
            )


def _wrong_hash_error(path: Path, digest: bytes) -> SnapshotException:
    return damaged_pack_error(path, f"the hash of content {digest.hex()[:12]} is wrong", digest=digest.hex())


def damaged_pack_error(path: Path, reason: str, digest: str = "") -> SnapshotException:
    return SnapshotException(
        f"the pack {path} is damaged: {reason}",
        hint="submit the folder again to replace it",
        path=str(path),
        digest=digest,
    )


def _read_index(file: int, path: Path) -> tuple[str, dict[bytes, BlobLocation]]:
    length = os.fstat(file).st_size
    if length < len(_HEADER) + _TRAILER.size:
        raise damaged_pack_error(path, "it is too short")
    # one read is enough for the trailer and the index of most packs
    tail_start = max(0, length - (64 << 10))
    tail = os.pread(file, length - tail_start, tail_start)
    digest, count, index_start, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    if magic != _MAGIC or index_start + count * _RECORD.size + _TRAILER.size != length:
        raise damaged_pack_error(path, "its end is missing")
    if index_start < tail_start:
        tail_start, tail = index_start, os.pread(file, length - index_start, index_start)
    index = tail[index_start - tail_start : len(tail) - _TRAILER.size]
    if sha256(index).digest() != digest or os.pread(file, len(_HEADER), 0) != _HEADER:
        raise damaged_pack_error(path, "the hash of its index is wrong")
    locations = {key: BlobLocation(offset, size) for key, offset, size in _RECORD.iter_unpack(index)}
    if max((offset + size for offset, size in locations.values()), default=0) > index_start:
        raise damaged_pack_error(path, "its index is invalid")
    return digest.hex(), locations


def _write_all(file: int, buffers: list[memoryview], offset: int) -> None:
    written = os.pwritev(file, buffers, offset)
    if written == sum(map(len, buffers)):
        return
    data = memoryview(b"".join(buffers))
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)
