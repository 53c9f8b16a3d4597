"""The metrics journal: memory-mapped files that a script writes its metrics to.

``log`` packs a record directly into a page of the file. There is nothing to flush and nothing to wait for: once the
call has returned, the kernel owns the bytes, and ``kill -9`` of the process does not lose them.
"""

from __future__ import annotations

import atexit
import errno
import mmap
import os
import struct
import sys
import time
import weakref
from _thread import RLock  # the class behind threading.RLock, without the 3 ms that importing threading takes
from itertools import count

try:  # importing json takes 9 ms, and a signal handler that logs during the import would find it half-initialized
    from _json import encode_basestring_ascii as _quoted
except ImportError:  # not CPython
    from json.encoder import encode_basestring_ascii as _quoted

from runyard.context import format as layout
from runyard.context.values import (
    record_kind,
    to_scalar,
    validate_list,
    validate_name,
    validate_row,
    validate_step,
    validate_table,
    validate_time,
)
from runyard.posix import procfs

_RETRY_S = 1.0
_STALE_DIRECTORY = (errno.EBADF, errno.ENOTDIR, errno.ENOENT)

_pack_float = layout.FLOAT_RECORD.pack_into
_pack_int = layout.INT_RECORD.pack_into
_now = time.time
_FLOAT, _INT, _NO_STEP, _COMMITTED = layout.FLOAT, layout.INT, layout.NO_STEP, layout.COMMITTED

TYPE_CHECKING = False  # every import here delays the first log call of a script
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any, Union

    _Buffer = Union[mmap.mmap, bytearray]
    _Segment = tuple[Callable[[], int], _Buffer]


class Journal:
    """The metrics of one process. All methods are thread-safe, and return when the point is safely stored.

    Files are created with the first point. A forked child continues with separate files. A full disk does not stop
    the training: points are dropped and counted, with a message on stderr. If the folder is moved during the run, the
    points follow it.
    """

    def __init__(self, folder: str | Path, *, rank: int = 0) -> None:
        self._folder = os.fspath(folder)
        self._rank = rank
        self._dropped = self._unrecorded = 0  # lost points: all, and those that are not recorded on disk
        self._warned = False
        # re-entrant, like everything that it guards: a signal handler may log while this thread is inside _put
        self._lock = RLock()
        self._begin()
        _journals.add(self)

    def log(self, name: str, value: Any, step: int | None = None) -> None:
        """Log one value. Lists, dicts and generators are refused; other unsupported types are stored as their repr."""
        at = -1
        try:
            metric = self._metrics[name]
            claim, buffer = self._segment
            if type(value) is float:
                at = claim()
                _pack_float(buffer, at, value, _now(), _NO_STEP if step is None else step, metric, _FLOAT, _COMMITTED)
                return
            if type(value) is int:
                at = claim()
                _pack_int(buffer, at, value, _now(), _NO_STEP if step is None else step, metric, _INT, _COMMITTED)
                return
        except (KeyError, TypeError, struct.error):
            # a new name, a full segment, or a value that does not fit the record; the claimed slot must be filled,
            # because a reader would wait for it as long as this process lives
            if at >= 0:
                _void(buffer, at)
        except BaseException:
            # Ctrl-C between claiming a slot and filling it: the mark prevents readers from waiting for it
            _mark_interrupted(self._segment[1])
            raise
        self._log_any(name, value, step)

    def log_at(self, name: str, value: Any, timestamp: Any, step: int | None = None) -> None:
        """Like ``log``, with an explicit time: seconds since 1970, or a datetime."""
        self._log_any(name, value, step, timestamp)

    def log_list(self, name: str, values: Any, step: int | None = None) -> None:
        """Log the values in order, as if one by one; none of them if one is of an unsupported type."""
        plain_values = validate_list(name, values)
        if plain_values:
            self._put(validate_name(name), layout.LIST, plain_values, step)

    def log_row(self, name: str, /, **columns: Any) -> None:
        self._put(validate_name(name), layout.ROW, validate_row(name, columns), None)

    def log_table(self, name: str, table: Any, step: int | None = None, timestamp: Any = None) -> None:
        columns = validate_table(name, table)
        if any(columns.values()):
            self._put(validate_name(name), layout.TABLE, columns, step, timestamp)

    def log_image(self, name: str, artifact_path: str, step: int | None = None, timestamp: Any = None) -> None:
        """Log an image that is, or will be, stored as the artifact ``artifact_path`` of the run."""
        self._put(validate_name(name), layout.IMAGE, str(artifact_path), step, timestamp)

    def log_document(self, name: str, kind: int, data: Any, step: int | None = None, timestamp: Any = None) -> None:
        """Log a text, histogram or document that :mod:`runyard.context.documents` has validated."""
        self._put(validate_name(name), kind, data, step, timestamp)

    def flush(self) -> None:
        """Do nothing: points are never buffered in the process."""

    def close(self) -> None:
        """Close the open files. Logging remains possible and opens new ones."""
        with self._lock:
            self._close_files()
            self._begin()

    @property
    def dropped(self) -> int:
        """Points of this process that were lost to a full disk."""
        return self._dropped

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._started, self._machine = 0, ""
        self._stem = f"{self._rank:05d}-{self._pid}-{os.urandom(4).hex()}"
        self._metrics: dict[str, int] = {}
        self._numbers = count()
        self._number = 0
        self._segment: _Segment = _no_segment()
        self._directory = self._names_file = self._side_file = self._lost_file = -1
        self._recorded = 0  # lost points in the .lost file
        self._retry_at = 0.0

    def _log_any(self, name: str, value: Any, step: int | None, timestamp: Any = None) -> None:
        name = validate_name(name)
        plain = to_scalar(name, value)
        kind = record_kind(plain)
        self._put(name, kind, str(plain) if kind == layout.BIG_INT else plain, step, timestamp)

    def _put(self, name: str, kind: int, value: Any, step: int | None, timestamp: Any = None) -> None:
        """Log a point under a lock; may open files and write to them."""
        number = _NO_STEP if step is None else validate_step(step)
        when = _now() if timestamp is None else validate_time(timestamp)
        with self._lock:
            if self._retry_at and time.monotonic() < self._retry_at:
                self._count_dropped(kind, value)
                return
            try:
                metric = self._metric(name)
                payload = value if kind in _IN_RECORD else self._append_side_line(value)
                self._write(metric, kind, payload, number, when)
                self._retry_at = 0.0
            except OSError as error:
                self._count_dropped(kind, value)
                self._retry_later(error)
            except BaseException:
                _mark_interrupted(self._segment[1])
                raise

    def _metric(self, name: str) -> int:
        metric = self._metrics.get(name)
        if metric is not None:
            return metric
        if self._names_file < 0:
            self._names_file = self._append_to(layout.NAMES_SUFFIX)
        number = next(self._numbers)
        _append(self._names_file, f"[{number}, {_quoted(name)}]")
        # only now visible to `log`: a record whose name is not on disk could not be read
        self._metrics[name] = number
        return number

    def _append_side_line(self, value: Any) -> int:
        if self._side_file < 0:
            self._side_file = self._append_to(layout.SIDE_SUFFIX)
        return _append(self._side_file, _quoted(value) if type(value) is str else _as_json(value))

    def _write(self, metric: int, kind: int, payload: Any, step: int, when: float) -> None:
        pack = _pack_float if kind == _FLOAT else _pack_int
        while True:
            segment = self._segment
            claim, buffer = segment
            at = claim()
            if at + layout.RECORD_BYTES <= len(buffer):
                pack(buffer, at, payload or 0, when, step, metric, kind, _COMMITTED)
                return
            self._next_segment(segment)

    def _next_segment(self, full: _Segment) -> None:
        if not self._machine:
            self._started, self._machine = procfs.start_ticks(self._pid) or 0, layout.this_machine()
        number, file = self._claim_segment()
        header = layout.Header(
            number=number,
            rank=self._rank,
            pid=self._pid,
            started=self._started,
            dropped=self._unrecorded,
            created=_now(),
            machine=self._machine,
        ).pack()
        fresh: _Segment | None = None
        try:
            size = layout.SEGMENT_BYTES[min(number, len(layout.SEGMENT_BYTES) - 1)]
            _allocate(file, size)
            os.pwrite(file, header[8:], 8)
            os.pwrite(file, header[:8], 0)  # the magic number last: readers ignore the file without it
            mapped = mmap.mmap(file, size)
            fresh = (count(layout.HEADER_BYTES, layout.RECORD_BYTES).__next__, mapped)
            if self._segment is full:
                self._segment = fresh
                self._unrecorded = 0
            else:  # a signal handler has created the next segment in between: readers must not wait for this one
                _mark_interrupted(mapped)
        except BaseException:
            if self._segment is not fresh:
                os.ftruncate(file, 0)  # readers skip an empty segment once a later one exists
                if self._number == number:
                    os.unlink(layout.segment_name(self._stem, number), dir_fd=self._directory)
            raise
        finally:
            os.close(file)

    def _claim_segment(self) -> tuple[int, int]:
        while True:
            number = self._number
            try:
                name = layout.segment_name(self._stem, number)
                return number, self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            except FileExistsError:  # the full segment, or one that a signal handler has just created
                self._number = number + 1

    def _append_to(self, suffix: str) -> int:
        return self._open(f"{self._stem}{suffix}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _open(self, name: str, flags: int) -> int:
        """Open a file relative to the folder's descriptor, which stays valid if the yard's home is moved."""
        if self._directory >= 0:
            try:
                return os.open(name, flags, 0o600, dir_fd=self._directory)
            except OSError as error:  # the script has closed all descriptors, or deleted the folder
                if error.errno not in _STALE_DIRECTORY:
                    raise
        os.makedirs(self._folder, exist_ok=True)
        self._directory = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return os.open(name, flags, 0o600, dir_fd=self._directory)

    def _close_files(self) -> None:
        for file in (self._directory, self._names_file, self._side_file, self._lost_file):
            if file >= 0:
                os.close(file)

    def _count_dropped(self, kind: int, value: Any) -> None:
        """Record lost points in the size of a file, which needs no space, so that they are counted after a kill -9."""
        points = len(value) if kind == layout.LIST else 1
        self._dropped += points
        self._unrecorded += points
        try:
            if self._lost_file < 0:
                self._lost_file = self._append_to(layout.LOST_SUFFIX)
            os.ftruncate(self._lost_file, self._recorded + self._unrecorded)
        except OSError:  # not even an empty file can be created: the next segment's header records them
            return
        self._recorded += self._unrecorded
        self._unrecorded = 0

    def _retry_later(self, error: OSError) -> None:
        self._retry_at = time.monotonic() + _RETRY_S
        if not self._warned:
            self._warned = True
            atexit.register(self._report_dropped)
            _print(f"runyard: metrics cannot be written ({error.strerror or error}); the run continues without them")

    def _report_dropped(self) -> None:
        if self._dropped:
            _print(f"runyard: {self._dropped} metric points were lost, because they could not be written")


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()
_IN_RECORD = (layout.FLOAT, layout.INT, layout.BOOL, layout.NONE)


def _restart_in_child() -> None:
    # the child shares the parent's pages: both would claim the same slots
    for journal in list(_journals):
        journal._lock = RLock()  # the old one may be held by a thread that does not exist in the child
        journal._close_files()
        journal._dropped = journal._unrecorded = 0
        journal._begin()


os.register_at_fork(after_in_child=_restart_in_child)


def _no_segment() -> _Segment:
    offsets: Iterator[int] = count(layout.HEADER_BYTES, layout.RECORD_BYTES)
    return offsets.__next__, bytearray()


def _void(buffer: _Buffer, at: int) -> None:
    if at + layout.RECORD_BYTES <= len(buffer):
        _pack_int(buffer, at, 0, _now(), _NO_STEP, 0, layout.VOID, _COMMITTED)


def _mark_interrupted(buffer: _Buffer) -> None:
    if buffer:
        buffer[layout.INTERRUPTED_AT] = 1


def _allocate(file: int, size: int) -> None:
    # on a full disk, writing to a mapped page without a block kills the process (SIGBUS); an error here does not
    try:
        os.posix_fallocate(file, 0, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        if os.pwrite(file, bytes(size), 0) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value)


def _append(file: int, text: str) -> int:
    """Append a line and return its offset, as reported by the file: a counter would be wrong after Ctrl-C."""
    line = text.encode() + b"\n"
    while True:
        offset = os.fstat(file).st_size
        try:
            if os.write(file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(file, offset)  # a partial line would corrupt the next one
            raise
        if os.fstat(file).st_size == offset + len(line):
            return offset
        # a signal handler has written in between, so the line's offset is unknown: write it again


def _print(line: str) -> None:
    from contextlib import suppress

    # stderr may be a log on the same full disk, or closed: neither may stop the training
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{line}\n")
