"""Datastores over the network: S3, Google Cloud Storage, Azure, by the one library that speaks to all of them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.data.base import PIECES, Changed, DataStore, Moved, Stored, Unreachable, damaged, drop, stop_if
from runyard.data.folder_store import digest_of, mark_of
from runyard.data.network_errors import Asked, NotInPieces, explained

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Engine

DIGEST = "runyard_sha256"  # kept beside each file; an identifier in C#, as Azure wants it
_AT_ONCE = 8 << 20  # a file up to this size travels in one request
_PIECE = 16 << 20
_PIECES_AT_ONCE = 4
_LISTED_AT_ONCE = 1000


class ObjectStore(DataStore):
    """``make`` opens the engine's store when it is first needed: its library takes a while to load."""

    def __init__(self, name: str, kind: str, make: Callable[[], Engine], prefix: str, hidden: tuple[str, ...]) -> None:
        self.kind = kind
        self._make, self._prefix = make, prefix.strip("/")
        self._asked = Asked(name, kind, hidden)
        self._opened: Engine | None = None
        self._lock = threading.Lock()

    @property
    def _store(self) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = self._make()
            return self._opened

    def list(self, prefix: str = "") -> Iterator[Stored]:
        with explained(self._asked, prefix):
            for some in self._store.list(self._full(prefix) or None, chunk_size=_LISTED_AT_ONCE):
                for about in some:
                    if not str(about["path"]).endswith("/"):  # some tools mark folders by an empty file of that name
                        yield self._stored(about)
        alone = self.head(prefix) if prefix else None
        if alone is not None:
            yield alone

    def head(self, path: str) -> Stored | None:
        with explained(self._asked, path), suppress(FileNotFoundError):
            return self._stored(self._store.head(self._full(path)))
        return None

    def get(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        if stored.size <= _AT_ONCE:
            data, kept = self._bytes(stored, None)
            half.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
        else:
            try:
                kept = self._in_pieces(stored, half, moved, abandoned)
            except NotInPieces:
                kept = self._in_one(stored, half, moved, abandoned)
            digest = digest_of(half, abandoned)[0]
        if kept and kept != digest:
            drop(half)
            moved(-stored.size if stored.size > _AT_ONCE else 0)
            raise damaged(self._asked.name, stored, digest, kept)
        moved(stored.size if stored.size <= _AT_ONCE else 0)
        return digest

    def put(self, path: str, source: Path, moved: Moved, abandoned: threading.Event) -> tuple[Stored, str]:
        about = source.stat()
        with explained(self._asked, path, writes=True):
            if about.st_size <= _AT_ONCE:
                data = source.read_bytes()
                if mark_of(source.stat()) != mark_of(about) or len(data) != about.st_size:
                    raise _changed(source)
                digest = hashlib.sha256(data).hexdigest()
                stop_if(abandoned)
                done = self._store.put(self._full(path), data, attributes={DIGEST: digest}, use_multipart=False)
                moved(len(data))
            else:
                digest, mark = digest_of(source, abandoned)
                pieces = _pieces(source, digest, mark, moved, abandoned)
                # in as many parts as S3 allows at most, ten thousand, with room to spare
                size = max(_PIECE // 2, about.st_size // 9000)
                done = self._store.put(
                    self._full(path), pieces, attributes={DIGEST: digest}, chunk_size=size, max_concurrency=4
                )
        return Stored(path, about.st_size, _bare(done.get("e_tag")), about.st_mtime), digest

    def delete(self, path: str) -> None:
        with explained(self._asked, path), suppress(FileNotFoundError):
            self._store.delete(self._full(path))

    def digest_kept(self, stored: Stored) -> str | None:
        with explained(self._asked, stored.path):
            found = self._store.get(self._full(stored.path), options={"head": True})
            kept = found.attributes.get(DIGEST) if self._is_same(found, stored) else None
        return str(kept) if kept else None

    def _bytes(self, stored: Stored, span: tuple[int, int] | None) -> tuple[bytes, str]:
        """All of a version, or a span of it, and the digest that was kept beside it, if one was.

        Whoever answers with another version is not believed.
        """
        options: dict[str, Any] = {"if_match": f'"{stored.mark}"'} if stored.mark else {}
        if span is not None:
            options["range"] = span
        with explained(self._asked, stored.path):
            found = self._store.get(self._full(stored.path), options=options)
            if not self._is_same(found, stored):
                raise _changed(stored.path)
            kept = str(found.attributes.get(DIGEST, ""))
            data = bytes(found.bytes())
        wanted = stored.size if span is None else span[1] - span[0]
        if len(data) != wanted:
            raise Unreachable(f"{self._asked.name}: {stored.path} came with {len(data)} of {wanted} bytes")
        return data, kept

    def _in_pieces(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        """Several at a time, each to its place; returns the digest that was kept beside the file.

        Those that are there are noted beside, for whoever goes on after a break.
        """
        notes = half.with_name(half.name + PIECES)
        spans = [(at, min(at + _PIECE, stored.size)) for at in range(0, stored.size, _PIECE)]
        there = _noted(notes, stored) if half.exists() else set()
        counted = sum(spans[n][1] - spans[n][0] for n in there)
        kept = ""
        moved(counted)
        noting, broken = threading.Lock(), threading.Event()
        file = os.open(half, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        def fetch(number: int) -> None:
            nonlocal counted, kept
            if broken.is_set():
                return
            begin, end = spans[number]
            try:
                stop_if(abandoned)
                data, kept = self._bytes(stored, (begin, end))
                _write(file, data, begin)
            except BaseException:
                broken.set()
                raise
            with noting:
                note.write(f"{number}\n")
                note.flush()
                counted += end - begin
            moved(end - begin)

        try:
            os.ftruncate(file, stored.size)
            with open(notes, "w", encoding="utf-8") as note, ThreadPoolExecutor(_PIECES_AT_ONCE, "piece") as pool:
                note.write(f"{stored.mark}\n" + "".join(f"{n}\n" for n in sorted(there)))
                note.flush()
                for done in [pool.submit(fetch, n) for n in range(len(spans)) if n not in there]:
                    done.result()
        except BaseException as error:
            moved(-counted)  # said again by whoever goes on
            if isinstance(error, (Changed, NotInPieces)):
                drop(notes)
                drop(half)
            raise
        finally:
            os.close(file)
        drop(notes)
        return kept

    def _in_one(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        """For servers that do not give parts of a file."""
        total = 0
        try:
            with explained(self._asked, stored.path), open(half, "wb") as file:
                options = {"if_match": f'"{stored.mark}"'} if stored.mark else {}
                found = self._store.get(self._full(stored.path), options=options)
                if not self._is_same(found, stored):
                    raise _changed(stored.path)
                kept = str(found.attributes.get(DIGEST, ""))
                for data in found.stream(min_chunk_size=_AT_ONCE):
                    stop_if(abandoned)
                    file.write(data)
                    total += len(data)
                    moved(len(data))
            if total != stored.size:
                raise Unreachable(f"{self._asked.name}: {stored.path} came with {total} of {stored.size} bytes")
        except BaseException:
            moved(-total)
            raise
        return kept

    def _is_same(self, found: Any, stored: Stored) -> bool:
        about = found.meta
        return about["size"] == stored.size and (not stored.mark or _bare(about["e_tag"]) == stored.mark)

    def _full(self, path: str) -> str:
        return "/".join(part for part in (self._prefix, path) if part)

    def _stored(self, about: Any) -> Stored:
        path = str(about["path"])
        own = path[len(self._prefix) + 1 :] if self._prefix else path
        return Stored(own, int(about["size"]), _bare(about["e_tag"]), about["last_modified"].timestamp())


def _pieces(source: Path, digest: str, mark: str, moved: Moved, abandoned: threading.Event) -> Iterator[bytes]:
    """What travels is what was hashed: an error here comes before the upload is made whole, so nothing is there."""
    hashing, total = hashlib.sha256(), 0
    try:
        with open(source, "rb") as file:
            while data := file.read(_AT_ONCE):
                stop_if(abandoned)
                hashing.update(data)
                yield data
                total += len(data)
                moved(len(data))
            if hashing.hexdigest() != digest or mark_of(os.fstat(file.fileno())) != mark:
                raise _changed(source)
    except BaseException:
        moved(-total)
        raise


def _write(file: int, data: bytes, at: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, at)
        rest, at = rest[written:], at + written


def _noted(notes: Path, stored: Stored) -> set[int]:
    try:
        first, *numbers = notes.read_text(encoding="utf-8").split("\n")
    except OSError:
        return set()
    # the last one may be half written
    return {int(n) for n in numbers[:-1] if n.isdigit()} if first == stored.mark else set()


def _bare(tag: Any) -> str:
    """Listings and answers write the same tag with and without quotes."""
    return str(tag or "").removeprefix("W/").strip('"')


def _changed(what: object) -> Changed:
    return Changed(f"{what} was written to while it was read", hint="try again when nobody writes to it")
