"""The files of a run, followed from one machine to another: what is new since, byte for byte, and each byte once.

How far the other side is can be read from its own copy, so there is nothing to remember and nothing to agree on: after
a cut, or the death of either side, both go on from what is there.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional, Union

from runyard.compute.ssh.framing import CHUNK
from runyard.context import format as layout
from runyard.spec.folder import RunFolder

Frame = tuple[dict[str, Any], bytes]
Bytes = Union[bytes, mmap.mmap]
Have = dict[str, int]  # file -> how much of it the reader has: bytes, or records of a journal

_GROWING = (".txt", ".jsonl", ".log", layout.NAMES_SUFFIX, layout.SIDE_SUFFIX)
_WHOLE = (".json",)
_KEPT_BACK = frozenset(
    {RunFolder.ORDER, RunFolder.STOP, RunFolder.MIRROR, RunFolder.WORK, RunFolder.DATA, RunFolder.DATA_RECORD}
)
_LOOK_RECORDS = 4096
_MARK = layout.COMMITTED.to_bytes(2, "little")


class Trail:
    """The writer's side: the folder of one run, where its processes are."""

    def __init__(self, root: Path, have: Have) -> None:
        self._root = root
        self._have = dict(have)
        self._beyond: Have = {}  # records that were sent from behind one that is not complete
        self._seen: dict[str, tuple[int, int]] = {}  # whole files: their time and size when they were sent

    def news(self, final: bool = False) -> Iterator[Frame]:
        """Everything that is new. What the agents said comes last: whoever reads of an end has all that came before.

        ``final``: no process of the run is left here.
        """
        said: list[str] = []
        files: list[str] = []
        for name in _files(self._root):
            (said if name.endswith(RunFolder.EVENTS) else files).append(name)
        # looked at before the rest is read: a line that is written meanwhile waits for the next round
        sizes = {name: _size(self._root / name) for name in said}
        for name in sorted(files, key=_order):
            if name.endswith(layout.SEGMENT_SUFFIX):
                continue
            yield from self._whole(name) if name.endswith(_WHOLE) else self._growing(name)
        for name in sorted(name for name in files if name.endswith(layout.SEGMENT_SUFFIX)):
            yield from self._segment(name, final)
        for name in said:
            yield from self._growing(name, sizes[name])

    def _growing(self, name: str, up_to: Optional[int] = None) -> Iterator[Frame]:
        size = _size(self._root / name) if up_to is None else up_to
        at = self._have.get(name, 0)
        if at >= size:
            return
        with suppress(FileNotFoundError), open(self._root / name, "rb") as file:
            file.seek(at)
            while at < size:
                data = file.read(min(CHUNK, size - at))
                if not data:
                    return
                yield {"file": name, "at": at}, data
                at += len(data)
                self._have[name] = at

    def _whole(self, name: str) -> Iterator[Frame]:
        with suppress(OSError):
            found = (self._root / name).stat()
            mark = (found.st_mtime_ns, found.st_size)
            if self._seen.get(name) != mark:
                yield {"file": name, "whole": True}, (self._root / name).read_bytes()
                self._seen[name] = mark

    def _segment(self, name: str, final: bool) -> Iterator[Frame]:
        """Records up to the first that is not complete, as a reader reads them; behind it only where nobody will
        complete it any more. Their names come before: they were written first, so they are looked for afterwards."""
        have = self._have.get(name, -1)
        if not final and _place(max(have, 0)) >= _size(self._root / name) > 0:
            return
        with _mapped(self._root / name) as data:
            if data is None or layout.Header.unpack(data[: layout.HEADER_BYTES]) is None:
                return
            first = max(have, 0)
            done = upto = committed(data, first)
            if final or data[layout.INTERRUPTED_AT] == 1:
                upto = max(done, _last_committed(data, done))
            if upto <= max(have, self._beyond.get(name, -1)) and not (final and upto > done):
                return
            head = {"file": name, "records": first, "size": len(data)}
            body = data[: layout.HEADER_BYTES] + data[_place(first) : _place(upto)]
        stem = name.rpartition("/")[2].partition(".")[0]
        for suffix in (layout.NAMES_SUFFIX, layout.SIDE_SUFFIX):
            yield from self._growing(f"{name.rpartition('/')[0]}/{stem}{suffix}")
        yield head, body
        self._have[name], self._beyond[name] = done, upto


def have(root: Path, bases: Have) -> Have:
    """The reader's side: how much of each file is here. ``bases`` are what was here before that came from elsewhere."""
    found: Have = {}
    for name in _files(root):
        if name.endswith(layout.SEGMENT_SUFFIX):
            with _mapped(root / name) as data:
                if data is not None and layout.Header.unpack(data[: layout.HEADER_BYTES]) is not None:
                    found[name] = committed(data, 0)
        elif name.endswith(_GROWING):
            found[name] = _size(root / name) - bases.get(name, 0)
    return found


def sizes(root: Path) -> Have:
    """Of the files that grow, before anything of a new attempt came."""
    return {name: _size(root / name) for name in _files(root) if name.endswith(_GROWING)}


def write(root: Path, head: dict[str, Any], body: bytes, bases: Have) -> None:
    """The reader's side: what came goes to its place; a second time, it changes nothing."""
    name = str(head["file"])
    path = root / name
    if name.startswith("/") or ".." in Path(name).parts or name in _KEPT_BACK:
        raise ValueError(f"a host must not write {name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if head.get("whole"):
        draft = path.with_name(f"{path.name}.draft")
        draft.write_bytes(body)
        draft.replace(path)
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if "records" in head:
            _write_records(file, int(head["records"]), int(head["size"]), body)
            return
        at = int(head["at"]) + bases.get(name, 0)
        if at > os.fstat(file).st_size:
            raise ValueError(f"{name}: bytes before {at} are missing")
        _write_all(file, body, at)
    finally:
        os.close(file)


def _write_records(file: int, first: int, size: int, body: bytes) -> None:
    if os.fstat(file).st_size < size:
        os.truncate(file, size)
    records = bytearray(body[layout.HEADER_BYTES :])
    # the markers in a second step: a reader that looks meanwhile must not find one beside a value that is not there yet
    bare = bytearray(records)
    for index in (0, 1):
        bare[layout.RECORD_BYTES - 2 + index :: layout.RECORD_BYTES] = bytes(len(records) // layout.RECORD_BYTES)
    _write_all(file, bytes(bare), _place(first))
    _write_all(file, bytes(records), _place(first))
    header = body[: layout.HEADER_BYTES]
    _write_all(file, header[8:], 8)
    _write_all(file, header[:8], 0)


def _write_all(file: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


def committed(data: Bytes, first: int) -> int:
    """The number of the first record that is not complete, from ``first`` on."""
    while True:
        part = data[_place(first) : _place(first + _LOOK_RECORDS)]
        whole = len(part) // layout.RECORD_BYTES
        done = whole
        for index in (0, 1):
            marks = _marks(part, index)[:whole]
            done = min(done, whole - len(marks.lstrip(_MARK[index : index + 1])))
        first += done
        if done < _LOOK_RECORDS:
            return first


def _last_committed(data: Bytes, first: int) -> int:
    """One more than the number of the last complete record, from ``first`` on."""
    part = data[_place(first) :]
    low, high = _marks(part, 0), _marks(part, 1)
    for index in range(min(len(low), len(high)) - 1, -1, -1):
        if low[index] == _MARK[0] and high[index] == _MARK[1]:
            return first + index + 1
    return first


def _marks(records: bytes, index: int) -> bytes:
    return records[layout.RECORD_BYTES - 2 + index :: layout.RECORD_BYTES]


def _place(record: int) -> int:
    return layout.HEADER_BYTES + record * layout.RECORD_BYTES


@contextmanager
def _mapped(path: Path) -> Iterator[Optional[mmap.mmap]]:
    try:
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # gone, or empty
        yield None
        return
    with mapped:
        yield mapped


def _files(root: Path) -> list[str]:
    """The files that are followed, by their names below the run's folder."""
    found = []
    for place, folders, names in os.walk(root):
        if Path(place) == root:
            folders[:] = [folder for folder in folders if folder not in _KEPT_BACK]
        below = Path(place).relative_to(root)
        found += [str(below / n) for n in names if _is_followed(n) and not (Path(place) == root and n in _KEPT_BACK)]
    return found


def _is_followed(name: str) -> bool:
    return name.endswith((*_GROWING, *_WHOLE, layout.SEGMENT_SUFFIX)) and name != RunFolder.ORDER


def _order(name: str) -> tuple[bool, str]:
    return (name.startswith(f"{RunFolder.JOURNAL}/"), name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
