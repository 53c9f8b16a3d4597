"""Many files from one place to another: several at a time, tried again, checked, and none of them ever half there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from runyard import clock
from runyard.data.base import PIECES, Abandoned, Changed, DataStore, Stored, Unreachable, damaged, drop, stop_if
from runyard.data.folder_store import digest_of
from runyard.data.network_errors import of_disk
from runyard.errors import DataException
from runyard.store.datastores import SeenFiles

PATIENCE = "RUNYARD_DATA_PATIENCE_S"  # how long a datastore may be away before a transfer gives up
_PATIENCE_S = 120.0
_AT_ONCE = 8
_RETRY_S = (0.2, 5.0)
_TRIES_IF_CHANGED = 3
_NOTED_AT_ONCE = 500
_LONG_TO_HASH = 100_000_000
_HASHING = "hashing"
_FETCHING = [threading.Lock() for _ in range(256)]  # two who want the same file at the same place share a half one
T = TypeVar("T")


@dataclass
class Progress:
    """How far something is; read by others while it changes."""

    files: int = 0
    files_done: int = 0
    files_skipped: int = 0
    bytes: int = 0
    bytes_done: int = 0
    doing: str = ""
    changed: Callable[[], None] = lambda: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def moved(self, count: int) -> None:
        with self._lock:
            self.bytes_done += count
            if self.doing.startswith(_HASHING):
                self.doing = ""
        self.changed()

    def done(self, *, skipped: bool = False, size: int = 0) -> None:
        with self._lock:
            self.files_done += 1
            self.files_skipped += skipped
            self.bytes_done += size
        self.changed()

    def say(self, text: str) -> None:
        self.doing = text
        self.changed()


@dataclass(frozen=True)
class Place:
    """A datastore by its name, and what is known of its contents."""

    name: str
    store: DataStore
    seen: SeenFiles


@dataclass(frozen=True)
class Upload:
    source: Path
    path: str  # in the datastore
    size: int


def upload(
    place: Place, files: Sequence[Upload], *, overwrite: bool, progress: Progress, abandoned: threading.Event
) -> list[str]:
    """Returns warnings: what was left as it is though it differs."""
    there = {stored.path: stored for stored in _listed(place, files, progress, abandoned)}
    known = place.seen.below(place.name, _common([file.path for file in files]))
    notes, differing = _Notes(place), _Counter()

    def one(file: Upload) -> None:
        old = there.get(file.path)
        if old is not None and not overwrite:
            differing.add(old.size != file.size)
            progress.done(skipped=True, size=file.size)
            return
        if old is not None and old.size == file.size and _same(place, file, old, known.get(file.path), abandoned):
            progress.done(skipped=True, size=file.size)
            return
        if file.size > _LONG_TO_HASH and not place.store.is_here:
            progress.say(f"{_HASHING} {file.source.name} before it is sent")
        try:
            stored, digest = patiently(
                lambda: place.store.put(file.path, file.source, progress.moved, abandoned), progress, abandoned
            )
        except OSError as error:
            raise of_disk(error, file.source) from error
        notes.add(stored, digest)
        progress.done()

    try:
        at_once(one, files, abandoned)
    finally:
        notes.write()
    if differing.count:
        return [
            f"{differing.count:,} of the files that were there already have another size; "
            "they were left as they are (overwrite=True replaces them)"
        ]
    return []


def download(
    place: Place,
    files: Sequence[tuple[Stored, Path]],
    *,
    overwrite: bool,
    progress: Progress,
    abandoned: threading.Event,
) -> None:
    known = place.seen.below(place.name, _common([stored.path for stored, _ in files]))
    notes = _Notes(place)

    def one(pair: tuple[Stored, Path]) -> None:
        stored, target = pair
        if target.is_file() and (not overwrite or _has(target, stored, known.get(stored.path), place, abandoned)):
            progress.done(skipped=True, size=stored.size)
            return
        fresh, digest = fetch(place, stored, target, known.get(stored.path), progress, abandoned)
        notes.add(fresh, digest)
        progress.done()

    try:
        at_once(one, files, abandoned)
    finally:
        notes.write()


def fetch(
    place: Place,
    stored: Stored,
    target: Path,
    known: tuple[str, str] | None,
    progress: Progress,
    abandoned: threading.Event,
) -> tuple[Stored, str]:
    """One file, to its place; what is returned is the version that it turned out to be."""
    for tries in range(_TRIES_IF_CHANGED):
        # by what it is of: whoever goes on after a break finds what came before it
        name = sha256(f"{place.name}\0{stored.path}\0{stored.mark}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
        half = target.with_name(f".{name}.runyard-half")
        get = partial(place.store.get, stored, half, progress.moved, abandoned)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _FETCHING[hash(half) % len(_FETCHING)]:
                return stored, _fetched(place, stored, get, half, target, known, progress, abandoned)
        except Changed:
            _drop_half(half)
            found = patiently(partial(place.store.head, stored.path), progress, abandoned)
            if found is None:
                break
            if tries == _TRIES_IF_CHANGED - 1:
                raise
            stored = found
        except FileNotFoundError:
            break
        except (Unreachable, Abandoned):
            raise  # what came so far is gone on with by whoever asks again
        except DataException:
            _drop_half(half)
            raise
        except OSError as error:
            _drop_half(half)
            raise of_disk(error, target.parent) from error
    raise DataException(f"{stored.path} is not in datastore {place.name!r} any more", hint="it was there a moment ago")


def _fetched(
    place: Place,
    stored: Stored,
    get: Callable[[], str],
    half: Path,
    target: Path,
    known: tuple[str, str] | None,
    progress: Progress,
    abandoned: threading.Event,
) -> str:
    digest = patiently(get, progress, abandoned)
    if known is not None and known[0] == stored.mark and known[1] != digest:
        progress.moved(-stored.size)
        raise damaged(place.name, stored, digest, known[1])
    half.chmod(0o644)
    half.replace(target)
    return digest


def _drop_half(half: Path) -> None:
    drop(half)
    drop(half.with_name(half.name + PIECES))


def patiently(work: Callable[[], T], progress: Progress, abandoned: threading.Event) -> T:
    """Tried again for as long as there is hope; people are told meanwhile."""
    began, wait_s = clock.monotonic(), _RETRY_S[0]
    moved_then = progress.bytes_done
    while True:
        try:
            found = work()
            if progress.doing.startswith(_AWAY):
                progress.say("")
            return found
        except Unreachable as error:
            now = clock.monotonic()
            if progress.bytes_done > moved_then:  # others get through, or it did for a while: hope begins anew
                began, moved_then = now, progress.bytes_done
            if now - began > _patience_s():
                raise
            progress.say(f"{_AWAY} for {clock.duration_text(now - began)}: {error.message}")
            if abandoned.wait(wait_s):
                stop_if(abandoned)
            wait_s = min(wait_s * 2, _RETRY_S[1])


_AWAY = "no connection"


def at_once(work: Callable[[T], None], items: Iterable[T], abandoned: threading.Event) -> None:
    """By several threads; after the first failure nothing more is begun."""
    waiting, lock, failed = iter(items), threading.Lock(), threading.Event()

    def worker() -> None:
        while not failed.is_set():
            stop_if(abandoned)
            with lock:
                item = next(waiting, _NOTHING)
            if item is _NOTHING:
                return
            try:
                work(item)  # type: ignore[arg-type]
            except BaseException:
                failed.set()
                raise

    with ThreadPoolExecutor(_AT_ONCE, "move") as pool:
        for done in [pool.submit(worker) for _ in range(_AT_ONCE)]:
            done.result()


_NOTHING = object()


def _listed(place: Place, files: Sequence[Upload], progress: Progress, abandoned: threading.Event) -> list[Stored]:
    if not files:
        return []
    if place.store.is_here:  # asked one by one it costs a stat, which listing costs too
        found = (place.store.head(file.path) for file in files)
        return [stored for stored in found if stored is not None]
    common = _common([file.path for file in files])
    progress.say("looking what is there")
    try:
        return patiently(lambda: list(place.store.list(common)), progress, abandoned)
    finally:
        progress.say("")


def _same(place: Place, file: Upload, old: Stored, known: tuple[str, str] | None, abandoned: threading.Event) -> bool:
    kept = known[1] if known is not None and known[0] == old.mark else _digest_there(place, old, abandoned)
    return kept is not None and digest_of(file.source, abandoned)[0] == kept


def _digest_there(place: Place, stored: Stored, abandoned: threading.Event) -> str | None:
    local = place.store.local_path(stored.path)
    if local is not None:
        return digest_of(local, abandoned)[0]
    try:
        return place.store.digest_kept(stored)
    except (DataException, FileNotFoundError):
        return None


def _has(target: Path, stored: Stored, known: tuple[str, str] | None, place: Place, abandoned: threading.Event) -> bool:
    if target.stat().st_size != stored.size:
        return False
    kept = known[1] if known is not None and known[0] == stored.mark else _digest_there(place, stored, abandoned)
    return kept is not None and digest_of(target, abandoned)[0] == kept


def _common(paths: Sequence[str]) -> str:
    """The folder that all of them are in."""
    if not paths:
        return ""
    first = os.path.commonpath(paths) if len(paths) > 1 else os.path.dirname(paths[0])  # noqa: PTH120
    return first if first not in paths else os.path.dirname(first)  # noqa: PTH120


def _patience_s() -> float:
    return float(os.environ.get(PATIENCE, _PATIENCE_S))


class _Notes:
    """What was seen, written down by the handful."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._rows: list[tuple[str, str, str]] = []
        self._lock = threading.Lock()

    def add(self, stored: Stored, digest: str) -> None:
        if not stored.mark:
            return
        with self._lock:
            self._rows.append((stored.path, stored.mark, digest))
            rows = self._rows if len(self._rows) >= _NOTED_AT_ONCE else []
            if rows:
                self._rows = []
        if rows:
            self._place.seen.add(self._place.name, rows)

    def write(self) -> None:
        with self._lock:
            rows, self._rows = self._rows, []
        self._place.seen.add(self._place.name, rows)


class _Counter:
    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def add(self, more: bool) -> None:
        if more:
            with self._lock:
                self.count += 1
