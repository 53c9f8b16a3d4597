"""Contents of datastores on this machine: each once, by its hash; and trees of them that runs read, each once too.

A tree is made of hard links, so it costs no room, and removing it leaves what other trees have. Files are for reading:
one that somebody wrote to nevertheless is known by its time, and fetched anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard.errors import DataException
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder

LIMIT = "RUNYARD_DATA_CACHE_GB"
_LIMIT_GB = 50.0
_UNTOUCHED_NS = 946_684_800 * 10**9  # the time that every content bears: a write, by anybody, gives it another
_SIDE = ".json"
_LOCKS = 64


@dataclass(frozen=True)
class Leaf:
    path: str  # in the tree
    digest: str
    size: int


class Cache:
    """``in_use`` names the trees that runs have, which are never removed."""

    def __init__(self, root: Path, in_use: Callable[[], set[str]] = set) -> None:
        self._contents, self._trees = root / "content", root / "trees"
        self._incoming = root / "incoming"
        self._in_use = in_use
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        self._making_room = threading.Lock()
        self._checked_for: Optional[int] = None  # the limit that all that is here was found to be below
        # a few for all names: one for each of a million files would never be let go
        self._bringing = [threading.Lock() for _ in range(_LOCKS)]
        self._growing = [threading.Lock() for _ in range(_LOCKS)]

    def content(self, digest: str) -> Path | None:
        """Where it is, if it is here and nobody has written to it."""
        path = self._place(digest)
        try:
            about = path.stat()
        except OSError:
            return None
        if about.st_mtime_ns != _UNTOUCHED_NS:
            path.unlink(missing_ok=True)
            return None
        return path

    def incoming(self, name: str) -> Path:
        """Where something is brought before it is taken in; the same name finds what came before a break."""
        self._incoming.mkdir(parents=True, exist_ok=True)
        return self._incoming / hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def take(self, digest: str, source: Path) -> Path:
        """Moves a file in, whose hash was just computed."""
        target = self._place(digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._checked_for = None
        source.chmod(0o444)
        os.utime(source, ns=(_UNTOUCHED_NS, _UNTOUCHED_NS))
        source.replace(target)
        return target

    def bringing(self, name: str) -> threading.Lock:
        """Whoever brings the same thing a second time waits, and finds it."""
        return self._bringing[hash(name) % _LOCKS]

    def tree(self, leaves: Sequence[Leaf], missing: Callable[[Leaf], None]) -> Path:
        """The tree of these files. ``missing`` is asked to ``take`` what is not here any more."""
        key = key_of(leaves)
        folder = self._trees / key
        with self._growing[hash(key) % _LOCKS]:
            if folder.is_dir() and self._is_whole(folder, leaves):
                self._used(key)
                return folder
            if folder.is_dir():  # mended, not made anew: a run may be reading it
                self._grow(folder, [leaf for leaf in leaves if not self._is_whole(folder, [leaf])], missing)
                self._used(key)
                return folder
            half = self._trees / f".{key}.{os.urandom(4).hex()}.half"
            half.mkdir(parents=True)
            try:
                self._grow(half, leaves, missing)
                size = sum(leaf.size for leaf in {leaf.digest: leaf for leaf in leaves}.values())
                # before the tree is there: one without it, after a kill, would never be removed
                (self._trees / f"{key}{_SIDE}").write_text(json.dumps({"bytes": size, "files": len(leaves)}))
                _take_place(half, folder)
            except BaseException:
                _remove_tree(half)
                raise
        return folder

    def make_room(self) -> list[str]:
        """Trees that were not used for the longest time go, until what is left is below the limit."""
        limit = _limit_bytes()
        if self._checked_for == limit:
            return []  # nothing came since
        if not self._making_room.acquire(blocking=False):
            return []  # another is at it: two would remove what the other counts
        is_below = False
        try:
            self._checked_for = limit  # said before it is counted, so that what comes meanwhile takes it back
            gone, total = self._remove_least_used(limit)
            is_below = total <= limit
        finally:
            if not is_below:
                self._checked_for = None
            self._making_room.release()
        return gone

    def hold(self, key: str, by: int) -> None:
        """While a tree is being handed to a run that is not on record yet."""
        with self._lock:
            count = self._held.pop(key, 0) + by
            if count:
                self._held[key] = count

    def size(self) -> int:
        return sum(about.st_size for _, about in self._all())

    def clean_leftovers(self) -> None:
        """For the start of a yard: trees that a former one did not finish. What was half brought is gone on with."""
        if self._trees.is_dir():
            for half in self._trees.glob(".*.half"):
                _remove_tree(half)

    def _remove_least_used(self, limit: int) -> tuple[list[str], int]:
        """The trees that went, and how much is left."""
        trees = self._by_last_use()
        in_use: Optional[set[str]] = None
        gone: list[str] = []
        total = self.size()
        for used_ns, side in trees:
            if total <= limit:
                break
            if in_use is None:
                in_use = self._in_use()
            key = side.name.removesuffix(_SIDE)
            if key in in_use:
                continue
            with self._growing[hash(key) % _LOCKS]:
                if self._is_held(key) or _changed_ns(side) != used_ns:
                    continue  # a run was given it since those in use were asked for
                _remove_tree(self._trees / key)
                side.unlink(missing_ok=True)
            gone.append(key)
            total = self._drop_unlinked(total, limit)
        if total > limit:
            total = self._drop_unlinked(total, limit)
        return gone, total

    def _is_held(self, key: str) -> bool:
        with self._lock:
            return key in self._held

    def _grow(self, root: Path, leaves: Iterable[Leaf], missing: Callable[[Leaf], None]) -> None:
        made: set[str] = set()
        for leaf in leaves:
            content = self.content(leaf.digest)
            if content is None:
                missing(leaf)
                content = self.content(leaf.digest)
                if content is None:
                    raise DataException(f"{leaf.path} did not arrive in the cache")
            target = root / leaf.path
            parent = os.path.dirname(leaf.path)  # noqa: PTH120 - of text, a hundred thousand times
            if parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(parent)
            try:
                os.link(content, target)
            except OSError:  # one to be mended; too many links to one file; or a file system without them
                _copy_of(content, target)

    def _is_whole(self, folder: Path, leaves: Sequence[Leaf]) -> bool:
        root = os.fspath(folder)
        for leaf in leaves:
            try:
                about = os.stat(f"{root}/{leaf.path}")  # noqa: PTH116 - a Path for each would cost more than the call
            except OSError:
                return False
            if about.st_mtime_ns != _UNTOUCHED_NS or about.st_size != leaf.size:
                return False
        return True

    def _used(self, key: str) -> None:
        with suppress(OSError):
            os.utime(self._trees / f"{key}{_SIDE}")

    def _by_last_use(self) -> list[tuple[int, Path]]:
        """When each tree was used, and the file beside it that says so; a file may be there before its tree."""
        sides = list(self._trees.glob(f"*{_SIDE}")) if self._trees.is_dir() else []
        found = [(_changed_ns(side), side) for side in sides]
        return sorted((used_ns, side) for used_ns, side in found if used_ns is not None)

    def _drop_unlinked(self, total: int, limit: int) -> int:
        """Contents that no tree has any more, the oldest first."""
        for path, about in sorted(self._all(), key=lambda found: found[1].st_ctime):
            if total <= limit:
                break
            if about.st_nlink == 1:
                path.unlink(missing_ok=True)
                total -= about.st_size
        return total

    def _all(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        for folder in self._contents.iterdir() if self._contents.is_dir() else ():
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # one that was written to, and removed, meanwhile
                        found.append((Path(entry.path), entry.stat()))
        return found

    def _place(self, digest: str) -> Path:
        return self._contents / digest[:2] / digest


def note_trees(folder: RunFolder, keys: Iterable[str]) -> None:
    """In the folder of a run; written before they are there, so that none is removed while it needs them."""
    known = _noted(folder.data_record)
    write_text(folder.data_record, json.dumps({"trees": sorted({*known, *keys})}))


def trees_in_use(root: Path) -> set[str]:
    """Of all runs whose folders are somewhere below."""
    found: set[str] = set()
    for pattern in ("runs/*/data.json", "*/runs/*/data.json"):
        for record in root.glob(pattern):
            found.update(_noted(record))
    return found


def copy_tree(tree: Path, leaves: Sequence[Leaf], target: Path) -> None:
    """For whoever wants to write to it: all of it, or nothing."""
    if target.exists():
        return
    half = target.with_name(f".{target.name}.{os.urandom(4).hex()}.half")
    try:
        half.mkdir(parents=True)
        for leaf in leaves:
            path = half / leaf.path
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / leaf.path, path)
        half.replace(target)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def _noted(record: Path) -> list[str]:
    try:
        found: list[str] = json.loads(record.read_bytes())["trees"]
    except (OSError, ValueError, KeyError):
        return []
    return found


def key_of(leaves: Iterable[Leaf]) -> str:
    """The same files under the same names have the same key, whichever datastore they came from."""
    hashing = hashlib.sha256()
    for leaf in sorted(leaves, key=lambda leaf: leaf.path):
        hashing.update(f"{leaf.path}\0{leaf.digest}\n".encode("utf-8", "surrogateescape"))
    return hashing.hexdigest()


def _take_place(half: Path, folder: Path) -> None:
    try:
        half.replace(folder)
    except OSError:
        if not folder.is_dir():
            raise
        _remove_tree(half)  # another process made the same


def _copy_of(content: Path, target: Path) -> None:
    half = target.with_name(f".{os.urandom(6).hex()}.half")
    shutil.copyfile(content, half)
    half.chmod(0o444)
    os.utime(half, ns=(_UNTOUCHED_NS, _UNTOUCHED_NS))
    half.replace(target)


def _remove_tree(folder: Path) -> None:
    """Renamed first: nobody finds half of it."""
    if not folder.exists():
        return
    gone = folder.with_name(f".{folder.name.strip('.')}.{os.urandom(4).hex()}.half")
    with suppress(OSError):
        folder = folder.replace(gone)
    shutil.rmtree(folder, ignore_errors=True)


def _changed_ns(path: Path) -> Optional[int]:
    """None: it is not there any more."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _limit_bytes() -> int:
    return int(float(os.environ.get(LIMIT, _LIMIT_GB)) * 1e9)
