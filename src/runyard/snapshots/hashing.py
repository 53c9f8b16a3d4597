"""Reads files once: hashes them and, if requested, adds them to a pack in the same pass, in several threads."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple, Optional

from runyard.errors import SnapshotException
from runyard.snapshots.manifest import decode, printable
from runyard.snapshots.pack import CHUNK_BYTES, PackWriter

_SMALL_BYTES = 512 << 10
_BUFFER_BYTES = 2 << 20
_BATCH_FILES = 32
_USE_THREADS_ABOVE_BYTES = 8 << 20
_MAX_THREADS = 4
# O_NOFOLLOW and O_NONBLOCK: a file may have become a link or a pipe since the folder was listed
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

ReadCallback = Callable[[int, int], None]  # files and bytes read since the last call; called in the calling thread


class UnreadFile(NamedTuple):
    folder: bytes  # relative to the root; b"" or ending with a slash
    name: bytes
    size: int
    stored_digest: str = ""  # content at the last snapshot, which needs no packing
    add_to_index: bool = True
    status: Optional[os.stat_result] = None  # when the folder was listed


class HashedFile(NamedTuple):
    file: UnreadFile
    digest: str
    size: int
    status: os.stat_result
    is_stable: bool  # the file did not change during the read


def hash_files(
    root: bytes,
    files: Sequence[UnreadFile],
    pack: Optional[PackWriter] = None,
    on_read: Optional[ReadCallback] = None,
) -> list[HashedFile]:
    """Hash files and add new contents to the pack. Files that no longer exist are omitted.

    A file that changes while it is read is read a second time. If it changes again, the bytes of the second read
    count: the pack contains exactly those, so the snapshot is consistent.
    """
    small = [file for file in files if file.size <= _SMALL_BYTES]
    workers = _Workers(root, small, pack, on_read)
    total = sum(file.size for file in small)
    workers.run(min(_MAX_THREADS, os.cpu_count() or 1) - 1 if total >= _USE_THREADS_ABOVE_BYTES else 0)
    hashed = workers.hashed
    for file in files:
        if file.size > _SMALL_BYTES:
            result = _hash_large(root, file, pack)
            if result is not None:
                hashed.append(result)
            if on_read is not None:
                on_read(1, file.size)
    return hashed


def read_error(path: bytes, error: OSError) -> SnapshotException:
    name = printable(decode(path))
    return SnapshotException(
        f"cannot read {name}: {error.strerror}",
        hint=f"make it readable (chmod u+r, and u+x for a folder), or exclude it: add /{name} to .runyardignore",
        inner_exception=error,
        path=decode(path),
    )


class _Workers:
    """Threads that read small files in batches. Reading and hashing release the interpreter lock."""

    def __init__(
        self, root: bytes, files: Sequence[UnreadFile], pack: Optional[PackWriter], on_read: Optional[ReadCallback]
    ) -> None:
        self.hashed: list[HashedFile] = []
        self._root, self._pack, self._on_read = root, pack, on_read
        self._batches = [files[start : start + _BATCH_FILES] for start in range(0, len(files), _BATCH_FILES)][::-1]

    def run(self, helpers: int) -> None:
        """Read all files in this thread and ``helpers`` others."""
        if not helpers:
            self._work(self._on_read)
            return
        from concurrent.futures import ThreadPoolExecutor  # not needed by most submissions, which read few files

        with ThreadPoolExecutor(helpers, "runyard-freeze") as pool:
            futures = [pool.submit(self._work) for _ in range(helpers)]
            self._work(self._on_read)
            for future in futures:
                future.result()

    def _work(self, on_read: Optional[ReadCallback] = None) -> None:
        reported = 0
        reader = _BatchReader(self._root, self._pack)
        try:
            while self._batches:
                try:
                    batch = self._batches.pop()
                except IndexError:
                    return  # another thread took the last one
                self.hashed += reader.read(batch)
                if on_read is not None:
                    new = self.hashed[reported:]
                    reported += len(new)
                    on_read(len(new), sum(result.size for result in new))
        except BaseException:
            self._batches.clear()  # stop the other threads
            raise


class _BatchReader:
    """Reads into one buffer per thread: allocating memory for each file would cost as much as reading it."""

    def __init__(self, root: bytes, pack: Optional[PackWriter]) -> None:
        self._root, self._pack = root, pack
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._filled = 0
        self._blobs: list[tuple[str, memoryview]] = []

    def read(self, files: Sequence[UnreadFile]) -> list[HashedFile]:
        hashed = []
        for file in files:
            if self._filled + file.size > _BUFFER_BYTES:
                self._flush()
            result = self._read(file)
            if result is not None:
                hashed.append(result)
        self._flush()
        return hashed

    def _read(self, file: UnreadFile) -> Optional[HashedFile]:
        descriptor = _open(self._root, file)
        if descriptor < 0:
            return None
        try:
            # the common case: one read, and the file has not changed since the folder was listed
            data = self._buffer[self._filled : self._filled + file.size]
            size = os.readv(descriptor, [data])
            after = os.fstat(descriptor)
            if after.st_mode & 0o170000 != stat.S_IFREG:
                return None
            is_stable = size == file.size and file.status is not None and _is_unchanged(file.status, after)
            if not is_stable:
                data, before, after = _read_again(descriptor)
                is_stable = len(data) == before.st_size and _is_unchanged(before, after)
        except OSError as error:
            raise read_error(file.folder + file.name, error) from error
        finally:
            os.close(descriptor)
        digest = sha256(data).hexdigest()
        if self._pack is not None and digest != file.stored_digest:
            self._blobs.append((digest, data))
            self._filled += len(data)
        return HashedFile(file, digest, len(data), after, is_stable)

    def _flush(self) -> None:
        if self._blobs and self._pack is not None:
            self._pack.add_all(self._blobs)
        self._blobs.clear()
        self._filled = 0


def _read_again(descriptor: int) -> tuple[memoryview, os.stat_result, os.stat_result]:
    before = os.fstat(descriptor)
    buffer = memoryview(bytearray(before.st_size))  # the file may have grown beyond the shared buffer
    size = 0
    while size < before.st_size:
        count = os.preadv(descriptor, [buffer[size:]], size)
        if count == 0:
            break
        size += count
    return buffer[:size], before, os.fstat(descriptor)


def _hash_large(root: bytes, file: UnreadFile, pack: Optional[PackWriter]) -> Optional[HashedFile]:
    descriptor = _open(root, file)
    if descriptor < 0:
        return None
    try:
        before = os.fstat(descriptor)
        if before.st_mode & 0o170000 != stat.S_IFREG:
            return None
        result, start = _stream(descriptor, file, before, pack)
        if not result.is_stable:
            if pack is not None:
                pack.rewind(start)
            result, start = _stream(descriptor, file, os.fstat(descriptor), pack)
        if pack is not None and result.digest != file.stored_digest:
            pack.finish_blob(result.digest, start)
        elif pack is not None:
            pack.rewind(start)
        return result
    finally:
        os.close(descriptor)


def _stream(
    descriptor: int, file: UnreadFile, before: os.stat_result, pack: Optional[PackWriter]
) -> tuple[HashedFile, int]:
    """Hash a file and append it to the pack; return also its start position in the pack."""
    start = pack.position if pack is not None else 0
    hashing = sha256()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    size = 0
    while size < before.st_size:  # not until the end of the file: it may grow forever
        try:
            count = os.preadv(descriptor, [buffer[: before.st_size - size]], size)
        except OSError as error:
            raise read_error(file.folder + file.name, error) from error
        if count == 0:
            break
        hashing.update(buffer[:count])
        size += count
        if pack is not None:
            pack.append(buffer[:count])
    after = os.fstat(descriptor)
    is_stable = size == before.st_size and _is_unchanged(before, after)
    return HashedFile(file, hashing.hexdigest(), size, after, is_stable), start


def _open(root: bytes, file: UnreadFile) -> int:
    """A descriptor, or -1 if the file was deleted since the folder was listed."""
    path = file.folder + file.name
    try:
        return os.open(root + b"/" + path, _FLAGS)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise read_error(path, error) from error


def _is_unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    # a write changes also the ctime, which programs cannot set; some file systems only have an mtime
    return (
        before.st_ctime_ns == after.st_ctime_ns
        and before.st_mtime_ns == after.st_mtime_ns
        and before.st_size == after.st_size
    )
