"""The contents of files, each read once: hashed and, if asked, packed in the same pass, by as many threads as help."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple, Optional

from runyard.errors import SnapshotException
from runyard.snapshots.manifest import decode, shown
from runyard.snapshots.pack import CHUNK_BYTES, PackWriter

_SMALL_BYTES = 512 << 10
_BUFFER_BYTES = 2 << 20
_FILES_AT_A_TIME = 32
_WORTH_THREADS_BYTES = 8 << 20
_MOST_THREADS = 4
# O_NOFOLLOW and O_NONBLOCK: a file may have become a link or a pipe since the folder was listed
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Progress = Callable[[int, int], None]  # files and bytes that were read since the last call; in the calling thread


class Unread(NamedTuple):
    folder: bytes  # below the root; b"" or with a slash at its end
    name: bytes
    size: int
    stored: str = ""  # a content that needs no packing: what this file had when it was last frozen
    remember: bool = True  # may be recognised by its stat the next time
    about: Optional[os.stat_result] = None  # as it was when the folder was listed


class Taken(NamedTuple):
    file: Unread
    digest: str
    size: int
    about: os.stat_result
    stable: bool  # the file did not change while it was read


def take_all(
    root: bytes, files: Sequence[Unread], pack: Optional[PackWriter] = None, progress: Optional[Progress] = None
) -> list[Taken]:
    """Reads the files and packs what is new. A file that is gone meanwhile is left out.

    A file that changes while it is read is read once more. If it changes again, what was read the second time counts:
    the pack has exactly those bytes, so the snapshot is still whole.
    """
    small = [file for file in files if file.size <= _SMALL_BYTES]
    gang = _Gang(root, small, pack, progress)
    total = sum(file.size for file in small)
    gang.work_with(min(_MOST_THREADS, os.cpu_count() or 1) - 1 if total >= _WORTH_THREADS_BYTES else 0)
    taken = gang.taken
    for file in files:
        if file.size > _SMALL_BYTES:
            one = _take_big(root, file, pack)
            if one is not None:
                taken.append(one)
            if progress is not None:
                progress(1, file.size)
    return taken


def unreadable(path: bytes, error: OSError) -> SnapshotException:
    name = shown(decode(path))
    return SnapshotException(
        f"{name} cannot be read: {error.strerror}",
        hint=f"make it readable (chmod u+r, and u+x for a folder), or leave it out: write /{name} into .runyardignore",
        inner_exception=error,
        path=decode(path),
    )


class _Gang:
    """Threads that take small files by the handful. Hashing and reading let go of the interpreter, so two help."""

    def __init__(
        self, root: bytes, files: Sequence[Unread], pack: Optional[PackWriter], progress: Optional[Progress]
    ) -> None:
        self.taken: list[Taken] = []
        self._root, self._pack, self._progress = root, pack, progress
        self._handfuls = [files[at : at + _FILES_AT_A_TIME] for at in range(0, len(files), _FILES_AT_A_TIME)][::-1]

    def work_with(self, helpers: int) -> None:
        if not helpers:
            self._work(self._progress)
            return
        from concurrent.futures import ThreadPoolExecutor  # most submissions read a file or two, alone

        with ThreadPoolExecutor(helpers, "runyard-freeze") as pool:
            helping = [pool.submit(self._work) for _ in range(helpers)]
            self._work(self._progress)
            for helper in helping:
                helper.result()

    def _work(self, progress: Optional[Progress] = None) -> None:
        told = 0
        bench = _Bench(self._root, self._pack)
        try:
            while self._handfuls:
                try:
                    handful = self._handfuls.pop()
                except IndexError:
                    return  # another thread was quicker
                self.taken += bench.take(handful)
                if progress is not None:
                    news = self.taken[told:]
                    told += len(news)
                    progress(len(news), sum(one.size for one in news))
        except BaseException:
            self._handfuls.clear()  # the others stop too
            raise


class _Bench:
    """One thread's buffer: fresh memory for each file would cost as much as reading it."""

    def __init__(self, root: bytes, pack: Optional[PackWriter]) -> None:
        self._root, self._pack = root, pack
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._filled = 0
        self._blobs: list[tuple[str, memoryview]] = []

    def take(self, files: Sequence[Unread]) -> list[Taken]:
        taken = []
        for file in files:
            if self._filled + file.size > _BUFFER_BYTES:
                self._empty()
            one = self._take(file)
            if one is not None:
                taken.append(one)
        self._empty()
        return taken

    def _take(self, file: Unread) -> Optional[Taken]:
        handle = _opened(self._root, file)
        if handle < 0:
            return None
        try:
            # the common case: one read, and the file is still as it was when the folder was listed
            data = self._buffer[self._filled : self._filled + file.size]
            read = os.readv(handle, [data])
            after = os.fstat(handle)
            if after.st_mode & 0o170000 != stat.S_IFREG:
                return None
            stable = read == file.size and file.about is not None and _same(file.about, after)
            if not stable:
                data, before, after = self._read_again(handle)
                stable = len(data) == before.st_size and _same(before, after)
        except OSError as error:
            raise unreadable(file.folder + file.name, error) from error
        finally:
            os.close(handle)
        digest = sha256(data).hexdigest()
        if self._pack is not None and digest != file.stored:
            self._blobs.append((digest, data))
            self._filled += len(data)
        return Taken(file, digest, len(data), after, stable)

    def _read_again(self, handle: int) -> tuple[memoryview, os.stat_result, os.stat_result]:
        before = os.fstat(handle)
        room = memoryview(bytearray(before.st_size))  # it may have grown beyond the buffer
        read = 0
        while read < before.st_size:
            more = os.preadv(handle, [room[read:]], read)
            if more == 0:
                break
            read += more
        return room[:read], before, os.fstat(handle)

    def _empty(self) -> None:
        if self._blobs and self._pack is not None:
            self._pack.add_all(self._blobs)
        self._blobs.clear()
        self._filled = 0


def _take_big(root: bytes, file: Unread, pack: Optional[PackWriter]) -> Optional[Taken]:
    handle = _opened(root, file)
    if handle < 0:
        return None
    try:
        before = os.fstat(handle)
        if before.st_mode & 0o170000 != stat.S_IFREG:
            return None
        taken, start = _stream(handle, file, before, pack)
        if not taken.stable:
            if pack is not None:
                pack.rewind(start)
            taken, start = _stream(handle, file, os.fstat(handle), pack)
        if pack is not None and taken.digest != file.stored:
            pack.keep(taken.digest, start)
        elif pack is not None:
            pack.rewind(start)
        return taken
    finally:
        os.close(handle)


def _stream(handle: int, file: Unread, before: os.stat_result, pack: Optional[PackWriter]) -> tuple[Taken, int]:
    """Appends the content to the pack; also says where it starts there."""
    start = pack.position if pack is not None else 0
    hashing = sha256()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    size = 0
    while size < before.st_size:  # and no further: a log that somebody writes would never end
        try:
            read = os.preadv(handle, [buffer[: before.st_size - size]], size)
        except OSError as error:
            raise unreadable(file.folder + file.name, error) from error
        if read == 0:
            break
        hashing.update(buffer[:read])
        size += read
        if pack is not None:
            pack.append(buffer[:read])
    digest = hashing.hexdigest()
    after = os.fstat(handle)
    stable = size == before.st_size and _same(before, after)
    return Taken(file, digest, size, after, stable), start


def _opened(root: bytes, file: Unread) -> int:
    path = file.folder + file.name
    try:
        return os.open(root + b"/" + path, _FLAGS)
    except FileNotFoundError:
        return -1  # gone since the folder was listed: as if it had never been there
    except OSError as error:
        raise unreadable(path, error) from error


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    # a write changes the ctime too, and nobody can set it back; some file systems only keep the mtime
    return (
        before.st_ctime_ns == after.st_ctime_ns
        and before.st_mtime_ns == after.st_mtime_ns
        and before.st_size == after.st_size
    )
