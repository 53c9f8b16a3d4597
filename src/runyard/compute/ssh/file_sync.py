"""Copies the growing files of a run from one machine to another: new content only, and each byte once.

The reader derives its progress from its own copy, so no state is stored or negotiated: after a lost connection, or a
crash of either side, both continue from the files as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

from runyard.compute.ssh.framing import CHUNK_BYTES
from runyard.context import format as layout
from runyard.posix.atomic_write import write_bytes
from runyard.posix.regular_file import UNREADABLE, open_regular, read_regular
from runyard.spec.folder import RunFolder

Frame = tuple[dict[str, Any], bytes]
Progress = dict[str, int]  # file -> how much of it the reader has: bytes, or records of a journal segment

_APPENDED = (".txt", ".jsonl", ".log", layout.NAMES_SUFFIX, layout.SIDE_SUFFIX, layout.LOST_SUFFIX)
_REPLACED = (".json",)
# each machine has its own
_EXCLUDED = frozenset(
    {RunFolder.ORDER, RunFolder.STOP, RunFolder.MIRROR, RunFolder.WORK, RunFolder.DATA, RunFolder.DATA_RECORD}
)
_MAX_REPLACED_BYTES = 1 << 24
_SCAN_RECORDS = 4096
_MARK = layout.COMMITTED.to_bytes(2, "little")


class FileSender:
    """The side of the machine where the run's processes are."""

    def __init__(self, root: Path, received: Progress) -> None:
        self._root = root
        self._sent = dict(received)
        self._sent_beyond: Progress = {}  # records sent from behind an incomplete one
        self._replaced: dict[str, tuple[int, int]] = {}  # replaced files: time and size when they were sent

    def changes(self, final: bool = False) -> Iterator[Frame]:
        """Yield everything new. Agents' events come last, so that a reader of an end has everything before it.

        ``final``: no process of the run is left on this machine.
        """
        events: list[str] = []
        files: list[str] = []
        for name in _files(self._root):
            (events if name.endswith(RunFolder.EVENTS) else files).append(name)
        # measured before the other files are read: an event that is written now waits for the next round
        sizes = {name: _size(self._root / name) for name in events}
        for name in sorted(files, key=_sort_key):
            if name.endswith(layout.SEGMENT_SUFFIX):
                continue
            yield from self._replacement(name) if name.endswith(_REPLACED) else self._appended(name)
        for name in sorted(name for name in files if name.endswith(layout.SEGMENT_SUFFIX)):
            yield from self._segment(name, final)
        for name in events:
            yield from self._appended(name, sizes[name])

    def _appended(self, name: str, up_to: Optional[int] = None) -> Iterator[Frame]:
        size = _size(self._root / name) if up_to is None else up_to
        offset = self._sent.get(name, 0)
        if offset >= size:
            return
        try:
            file = open_regular(self._root / name)
        except UNREADABLE:  # deleted or replaced by the script
            return
        try:
            while offset < size:
                data = os.pread(file, min(CHUNK_BYTES, size - offset), offset)
                if not data:
                    return
                yield {"file": name, "at": offset}, data
                offset += len(data)
                self._sent[name] = offset
        finally:
            os.close(file)

    def _replacement(self, name: str) -> Iterator[Frame]:
        with suppress(OSError):
            stat = (self._root / name).stat()
            version = (stat.st_mtime_ns, stat.st_size)
            if self._replaced.get(name) != version:
                yield {"file": name, "whole": True}, read_regular(self._root / name, _MAX_REPLACED_BYTES)
                self._replaced[name] = version

    def _segment(self, name: str, final: bool) -> Iterator[Frame]:
        """Yield the records up to the first incomplete one, where a reader stops; those behind it only when no process
        can complete it any longer. The files with the records' names precede them, but are read after them, because
        writers write the names first."""
        sent = self._sent.get(name, -1)
        if not final and _offset(max(sent, 0)) >= _size(self._root / name) > 0:
            return
        data = _read_segment(self._root / name)
        if layout.Header.unpack(data) is None:
            return
        first = max(sent, 0)
        complete = end = committed(data, first)
        if final or data[layout.INTERRUPTED_AT] == 1:
            end = max(complete, _last_committed(data, complete))
        if end <= max(sent, self._sent_beyond.get(name, -1)) and not (final and end > complete):
            return
        # read again: a record that was being written may have its marker, but not yet all of its value
        data = _read_segment(self._root / name)
        if len(data) < _offset(end):
            return
        head = {"file": name, "records": first, "size": len(data)}
        body = data[: layout.HEADER_BYTES] + data[_offset(first) : _offset(end)]
        stem = name.rpartition("/")[2].partition(".")[0]
        for suffix in (layout.NAMES_SUFFIX, layout.SIDE_SUFFIX):
            yield from self._appended(f"{name.rpartition('/')[0]}/{stem}{suffix}")
        yield head, body
        self._sent[name], self._sent_beyond[name] = complete, end


def received(root: Path, bases: Progress) -> Progress:
    """The reader's progress. ``bases`` are the sizes that files had before this sender."""
    progress: Progress = {}
    for name in _files(root):
        if name.endswith(layout.SEGMENT_SUFFIX):
            data = _read_segment(root / name)
            if layout.Header.unpack(data) is not None:
                progress[name] = committed(data, 0)
        elif name.endswith(_APPENDED):
            progress[name] = _size(root / name) - bases.get(name, 0)
    return progress


def sizes(root: Path) -> Progress:
    """The sizes of the append-only files, as the bases of a new attempt."""
    return {name: _size(root / name) for name in _files(root) if name.endswith(_APPENDED)}


def write(root: Path, head: dict[str, Any], body: bytes, bases: Progress) -> None:
    """Write a received frame. Repeating it changes nothing."""
    name = str(head["file"])
    path = root / name
    if name.startswith("/") or ".." in Path(name).parts or str(Path(name)) in _EXCLUDED:
        raise ValueError(f"a host must not write {name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if head.get("whole"):
        write_bytes(path, body)
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if "records" in head:
            _write_records(file, int(head["records"]), int(head["size"]), body)
            return
        offset = int(head["at"]) + bases.get(name, 0)
        if offset > os.fstat(file).st_size:
            raise ValueError(f"{name}: the bytes before {offset} are missing")
        _write_all(file, body, offset)
    finally:
        os.close(file)


def _write_records(file: int, first: int, size: int, body: bytes) -> None:
    if os.fstat(file).st_size < size:
        os.truncate(file, size)
    records = bytearray(body[layout.HEADER_BYTES :])
    # the commit marks in a second step: a concurrent reader must not see a mark before its value
    unmarked = bytearray(records)
    for index in (0, 1):
        unmarked[layout.RECORD_BYTES - 2 + index :: layout.RECORD_BYTES] = bytes(len(records) // layout.RECORD_BYTES)
    _write_all(file, bytes(unmarked), _offset(first))
    _write_all(file, bytes(records), _offset(first))
    header = body[: layout.HEADER_BYTES]
    _write_all(file, header[8:], 8)
    _write_all(file, header[:8], 0)


def _write_all(file: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written


def committed(data: bytes, first: int) -> int:
    """The number of the first incomplete record, from ``first`` on."""
    while True:
        part = data[_offset(first) : _offset(first + _SCAN_RECORDS)]
        count = len(part) // layout.RECORD_BYTES
        complete = count
        for index in (0, 1):
            marks = _marks(part, index)[:count]
            complete = min(complete, count - len(marks.lstrip(_MARK[index : index + 1])))
        first += complete
        if complete < _SCAN_RECORDS:
            return first


def _last_committed(data: bytes, first: int) -> int:
    """One more than the number of the last complete record, from ``first`` on."""
    part = data[_offset(first) :]
    low, high = _marks(part, 0), _marks(part, 1)
    for index in range(min(len(low), len(high)) - 1, -1, -1):
        if low[index] == _MARK[0] and high[index] == _MARK[1]:
            return first + index + 1
    return first


def _marks(records: bytes, index: int) -> bytes:
    return records[layout.RECORD_BYTES - 2 + index :: layout.RECORD_BYTES]


def _offset(record: int) -> int:
    return layout.HEADER_BYTES + record * layout.RECORD_BYTES


def _read_segment(path: Path) -> bytes:
    """Read, not mapped: a script that truncates a mapped file would kill this process."""
    try:
        return read_regular(path, layout.SEGMENT_BYTES[-1])
    except UNREADABLE:
        return b""


def _files(root: Path) -> list[str]:
    """The synchronized files, relative to the run's folder."""
    files = []
    for folder, subfolders, names in os.walk(root):
        if Path(folder) == root:
            subfolders[:] = [name for name in subfolders if name not in _EXCLUDED]
            names = [name for name in names if name not in _EXCLUDED]
        relative = Path(folder).relative_to(root)
        files += [str(relative / name) for name in names if _is_synchronized(name)]
    return files


def _is_synchronized(name: str) -> bool:
    return name.endswith((*_APPENDED, *_REPLACED, layout.SEGMENT_SUFFIX)) and name != RunFolder.ORDER


def _sort_key(name: str) -> tuple[bool, str]:
    return (name.startswith(f"{RunFolder.JOURNAL}/"), name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
