"""Local cache of datastore contents: each content once, by its SHA-256, and read-only trees of them for runs.

Trees consist of hard links: they take no additional space, and removing one does not affect the others. A file that a
process wrote to in spite of its mode is detected by its modification time and downloaded again.
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
from runyard.posix import sha256
from runyard.posix.atomic_write import create_folder, draft_path, replace_file, write_text
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.strict_json import parse_json

LIMIT = "RUNYARD_DATA_CACHE_GB"
_LIMIT_GB = 50.0
_UNMODIFIED_NS = 946_684_800 * 10**9  # modification time of every content; any write changes it
_RECORD_SUFFIX = ".json"  # of the file next to each tree, whose modification time is the tree's last use
_LOCKS = 64
_MAX_RECORD_BYTES = 1 << 24


@dataclass(frozen=True)
class Leaf:
    path: str  # in the tree
    digest: str
    size: int


class Cache:
    """``in_use`` returns the keys of trees that runs use, which are never evicted."""

    def __init__(self, root: Path, in_use: Callable[[], set[str]] = set) -> None:
        self._contents, self._trees = root / "content", root / "trees"
        self._incoming = root / "incoming"
        self._in_use = in_use
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        self._eviction = threading.Lock()
        self._below_limit: Optional[int] = None  # the limit that the cache was last found to be below
        # a fixed number of locks for all names: one for each of a million files would never be freed
        self._download_locks = [threading.Lock() for _ in range(_LOCKS)]
        self._tree_locks = [threading.Lock() for _ in range(_LOCKS)]

    def content(self, digest: str) -> Path | None:
        """The file with this content; None if it is not cached or was modified."""
        path = self._content_path(digest)
        try:
            status = path.stat()
        except OSError:
            return None
        if status.st_mtime_ns != _UNMODIFIED_NS:
            path.unlink(missing_ok=True)
            return None
        return path

    def incoming_path(self, name: str) -> Path:
        """The path for downloading a file before ``add``; the same for each name, so that a download can be resumed."""
        self._incoming.mkdir(parents=True, exist_ok=True)
        return self._incoming / sha256.of_text(name)[:32]

    def add(self, digest: str, source: Path) -> Path:
        """Move a file with a verified digest into the cache."""
        target = self._content_path(digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._below_limit = None
        _mark_unmodified(source)
        source.replace(target)
        return target

    def download_lock(self, name: str) -> threading.Lock:
        """Held during the download of a file, so that concurrent requests for it wait and find it cached."""
        return self._download_locks[hash(name) % _LOCKS]

    def tree(self, leaves: Sequence[Leaf], fetch_missing: Callable[[Leaf], None]) -> Path:
        """The folder with these files. ``fetch_missing`` must ``add`` a content that is not cached."""
        key = key_of(leaves)
        folder = self._trees / key
        with self._tree_locks[hash(key) % _LOCKS]:
            if folder.is_dir():  # repaired in place if necessary: a run may be reading it
                damaged = [leaf for leaf in leaves if not _is_unmodified(folder, leaf)]
                self._link(folder, damaged, fetch_missing)
                with suppress(OSError):
                    os.utime(self._trees / f"{key}{_RECORD_SUFFIX}")
                return folder
            with create_folder(folder) as draft:
                self._link(draft, leaves, fetch_missing)
                size = sum(leaf.size for leaf in {leaf.digest: leaf for leaf in leaves}.values())
                # before the tree exists: after a kill, a tree without this record would never be evicted
                (self._trees / f"{key}{_RECORD_SUFFIX}").write_text(json.dumps({"bytes": size, "files": len(leaves)}))
        return folder

    def evict(self) -> list[str]:
        """Remove the least recently used trees until the cache is below its limit; return their keys."""
        limit = _limit_bytes()
        if self._below_limit == limit:
            return []  # nothing was added since the last check
        if not self._eviction.acquire(blocking=False):
            return []  # another thread is evicting: both would remove files that the other one counts
        is_below = False
        try:
            self._below_limit = limit  # before counting, so that a concurrent `add` resets it
            removed, total = self._remove_least_used(limit)
            is_below = total <= limit
        finally:
            if not is_below:
                self._below_limit = None
            self._eviction.release()
        return removed

    def hold(self, key: str) -> None:
        """Protect a tree from eviction until ``release``, while it is assigned to a run."""
        with self._lock:
            self._held[key] = self._held.get(key, 0) + 1

    def release(self, key: str) -> None:
        with self._lock:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    def size(self) -> int:
        return sum(status.st_size for _, status in self._all_contents())

    def clean_leftovers(self) -> None:
        """Remove trees that a previous yard did not finish. Partial downloads are kept, to be resumed."""
        for pattern in ("*.draft", ".*.half"):
            for draft in self._trees.glob(pattern):
                shutil.rmtree(draft, ignore_errors=True)

    def _remove_least_used(self, limit: int) -> tuple[list[str], int]:
        """The keys of the removed trees, and the remaining size."""
        in_use: Optional[set[str]] = None
        removed: list[str] = []
        total = self.size()
        for used_ns, record in self._by_last_use():
            if total <= limit:
                break
            if in_use is None:
                in_use = self._in_use()
            key = record.name.removesuffix(_RECORD_SUFFIX)
            if key in in_use:
                continue
            with self._tree_locks[hash(key) % _LOCKS]:
                if self._is_held(key) or _modified_ns(record) != used_ns:
                    continue  # a run started to use it after `in_use` was computed
                _remove_tree(self._trees / key)
                record.unlink(missing_ok=True)
            removed.append(key)
            total = self._remove_unlinked(total, limit)
        if total > limit:
            total = self._remove_unlinked(total, limit)
        return removed, total

    def _is_held(self, key: str) -> bool:
        with self._lock:
            return key in self._held

    def _link(self, root: Path, leaves: Iterable[Leaf], fetch_missing: Callable[[Leaf], None]) -> None:
        created: set[str] = set()
        for leaf in leaves:
            content = self.content(leaf.digest)
            if content is None:
                fetch_missing(leaf)
                content = self.content(leaf.digest)
                if content is None:
                    raise DataException(f"{leaf.path} is missing in the cache after its download")
            target = root / leaf.path
            parent = os.path.dirname(leaf.path)  # noqa: PTH120 - faster than Path, for a hundred thousand files
            if parent not in created:
                target.parent.mkdir(parents=True, exist_ok=True)
                created.add(parent)
            try:
                os.link(content, target)
            except OSError:  # the target exists, the file has too many links, or the file system has no hard links
                with replace_file(target) as draft:
                    shutil.copyfile(content, draft)
                    _mark_unmodified(draft)

    def _by_last_use(self) -> list[tuple[int, Path]]:
        """(time of last use, record) of each tree; a record may exist before its tree."""
        times = [(_modified_ns(record), record) for record in self._trees.glob(f"*{_RECORD_SUFFIX}")]
        return sorted((used_ns, record) for used_ns, record in times if used_ns is not None)

    def _remove_unlinked(self, total: int, limit: int) -> int:
        """Remove contents that are in no tree, oldest first; return the remaining size."""
        for path, status in sorted(self._all_contents(), key=lambda content: content[1].st_ctime):
            if total <= limit:
                break
            if status.st_nlink == 1:
                path.unlink(missing_ok=True)
                total -= status.st_size
        return total

    def _all_contents(self) -> list[tuple[Path, os.stat_result]]:
        contents = []
        for folder in self._contents.iterdir() if self._contents.is_dir() else ():
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # removed since it was listed, because it was modified
                        contents.append((Path(entry.path), entry.stat()))
        return contents

    def _content_path(self, digest: str) -> Path:
        return self._contents / digest[:2] / digest


def record_trees(folder: RunFolder, keys: Iterable[str]) -> None:
    """Record in a run's folder that it uses these trees; called before they exist, so that none is evicted."""
    recorded = _recorded_trees(folder.data_record)
    write_text(folder.data_record, json.dumps({"trees": sorted({*recorded, *keys})}))


def trees_in_use(root: Path) -> set[str]:
    """Keys of the trees used by the runs whose folders are below ``root``."""
    keys: set[str] = set()
    for pattern in ("runs/*/data.json", "*/runs/*/data.json"):
        for record in root.glob(pattern):
            keys.update(_recorded_trees(record))
    return keys


def copy_tree(tree: Path, leaves: Sequence[Leaf], target: Path) -> None:
    """Make a writable copy of a tree; atomic."""
    if target.exists():
        return
    with create_folder(target) as draft:
        for leaf in leaves:
            path = draft / leaf.path
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / leaf.path, path)


def key_of(leaves: Iterable[Leaf]) -> str:
    """The key of a tree: equal for equal names and contents, independent of the datastore."""
    hashing = hashlib.sha256()
    for leaf in sorted(leaves, key=lambda leaf: leaf.path):
        hashing.update(f"{leaf.path}\0{leaf.digest}\n".encode("utf-8", "surrogateescape"))
    return hashing.hexdigest()


def _recorded_trees(record: Path) -> list[str]:
    """The keys in a run's record, which its script may have damaged."""
    try:
        content = parse_json(read_regular(record, _MAX_RECORD_BYTES), max_bytes=_MAX_RECORD_BYTES)
    except (OSError, ValueError):
        return []
    keys = content.get("trees") if isinstance(content, dict) else None
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _mark_unmodified(path: Path) -> None:
    path.chmod(0o444)
    os.utime(path, ns=(_UNMODIFIED_NS, _UNMODIFIED_NS))


def _is_unmodified(folder: Path, leaf: Leaf) -> bool:
    try:
        status = os.stat(f"{folder}/{leaf.path}")  # noqa: PTH116 - creating a Path takes longer than the call
    except OSError:
        return False
    return status.st_mtime_ns == _UNMODIFIED_NS and status.st_size == leaf.size


def _remove_tree(folder: Path) -> None:
    trash = draft_path(folder)  # renamed first, so that no process sees a part of the tree
    with suppress(OSError):
        folder = folder.replace(trash)
    shutil.rmtree(folder, ignore_errors=True)


def _modified_ns(path: Path) -> Optional[int]:
    """None if the file does not exist."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _limit_bytes() -> int:
    return int(float(os.environ.get(LIMIT, _LIMIT_GB)) * 1e9)
