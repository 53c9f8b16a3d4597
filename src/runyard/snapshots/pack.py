"""One file that holds the contents of many: writing 10,000 small files takes seconds, writing one takes half of one.

    header   16 bytes
    blobs    one after the other, as they are
    index    48 bytes for each blob: sha256, offset, size
    trailer  sha256 of the index, number of blobs, offset of the index, magic

The trailer is written last, so a pack that was cut off has none and is known as damaged. Every blob is compared with
its hash when it is read.
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


class Place(NamedTuple):
    offset: int
    size: int


class PackWriter:
    """Appends blobs to a new file. A context manager: without an error inside, the pack is complete at the end."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._lock = threading.Lock()
        self._places: dict[str, Place] = {}
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
        return frozenset(self._places)

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def add_all(self, blobs: Iterable[tuple[str, memoryview]]) -> None:
        """Whole blobs, each stored once; several threads may do this at the same time."""
        fresh = []
        with self._lock:
            start = self._position
            for digest, data in blobs:
                if digest not in self._places:
                    self._places[digest] = Place(self._position, len(data))
                    self._position += len(data)
                    fresh.append(data)
        if fresh:
            _write_all(self._file, fresh, start)

    @property
    def position(self) -> int:
        return self._position

    def append(self, data: memoryview) -> None:
        """A piece of a blob whose digest is only known at its end: `keep` or `rewind` follows. For one thread."""
        _write_all(self._file, [data], self._position)
        self._position += len(data)

    def keep(self, digest: str, start: int) -> None:
        """Ends the blob that began at ``start``, unless it is there already."""
        if digest in self._places:
            self.rewind(start)
        else:
            self._places[digest] = Place(start, self._position - start)

    def rewind(self, start: int) -> None:
        """Forgets what was appended since: the next blob is written over it."""
        self._position = start

    def _finish(self) -> None:
        index = b"".join(
            _RECORD.pack(bytes.fromhex(digest), place.offset, place.size) for digest, place in self._places.items()
        )
        trailer = _TRAILER.pack(sha256(index).digest(), len(self._places), self._position, _MAGIC)
        _write_all(self._file, [memoryview(_HEADER)], 0)
        _write_all(self._file, [memoryview(index + trailer)], self._position)
        # what was overwritten may have been longer
        os.ftruncate(self._file, self._position + len(index) + len(trailer))


class Pack:
    """A pack that is there: its index is checked when it is opened, its blobs when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb", buffering=0) as file:
                self.name, self.places = _read_index(file.fileno(), path)
        except OSError as error:
            raise damaged(path, error.strerror or str(error)) from error

    def open(self) -> OpenPack:
        return OpenPack(self.path)


class OpenPack:
    """Reads blobs; a context manager, to read many from one open file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise damaged(path, error.strerror or str(error)) from error

    def __enter__(self) -> OpenPack:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def read(self, digest: bytes, place: Place) -> bytes:
        data = os.pread(self._file, place.size, place.offset) if place.size <= CHUNK_BYTES else b""
        if len(data) < place.size:
            return b"".join(self.chunks(digest, place))
        if sha256(data).digest() != digest:
            raise damaged(self._path, f"the content {digest.hex()[:12]} in it has changed", digest=digest.hex())
        return data

    def chunks(self, digest: bytes, place: Place) -> Iterator[bytes]:
        """The blob in pieces; the error for a wrong hash comes after the last one."""
        hashing = sha256()
        offset, left = place
        while left:
            data = os.pread(self._file, min(left, CHUNK_BYTES), offset)
            if not data:
                raise damaged(self._path, "it is shorter than it says", digest=digest.hex())
            hashing.update(data)
            yield data
            offset += len(data)
            left -= len(data)
        if hashing.digest() != digest:
            raise damaged(self._path, f"the content {digest.hex()[:12]} in it has changed", digest=digest.hex())


def damaged(path: Path, why: str, digest: str = "") -> SnapshotException:
    return SnapshotException(
        f"the pack {path} is damaged: {why}",
        hint="submit the folder again: it is stored anew",
        path=str(path),
        digest=digest,
    )


def _read_index(file: int, path: Path) -> tuple[str, dict[bytes, Place]]:
    length = os.fstat(file).st_size
    if length < len(_HEADER) + _TRAILER.size:
        raise damaged(path, "it is too short")
    # one read gets the trailer and the index of most packs
    tail_at = max(0, length - (64 << 10))
    tail = os.pread(file, length - tail_at, tail_at)
    digest, count, index_at, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    if magic != _MAGIC or index_at + count * _RECORD.size + _TRAILER.size != length:
        raise damaged(path, "its end is missing")
    if index_at < tail_at:
        tail_at, tail = index_at, os.pread(file, length - index_at, index_at)
    index = tail[index_at - tail_at : len(tail) - _TRAILER.size]
    if sha256(index).digest() != digest or os.pread(file, len(_HEADER), 0) != _HEADER:
        raise damaged(path, "its index has changed")
    places = {key: Place(offset, size) for key, offset, size in _RECORD.iter_unpack(index)}
    if max((offset + size for offset, size in places.values()), default=0) > index_at:
        raise damaged(path, "its index points outside of it")
    return digest.hex(), places


def _write_all(file: int, buffers: list[memoryview], offset: int) -> None:
    written = os.pwritev(file, buffers, offset)
    if written == sum(map(len, buffers)):
        return
    data = memoryview(b"".join(buffers))
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)
