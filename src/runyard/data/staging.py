"""What of a datastore a run is given: listed, brought into the cache where it is far away, and told as it happens."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.data import copy
from runyard.data.base import DataStore, Stored, clean_path, listed_path, refuse_clashes
from runyard.data.cache import Cache, Leaf, key_of
from runyard.data.copy import Place, Progress
from runyard.data.folder_store import digest_of
from runyard.data.registry import Datastores
from runyard.errors import UserErrorException
from runyard.spec.data import DataUse

Say = Callable[[str], None]
_SAY_EVERY_S = 1.0
_SETTLED_S = 2.0
_REMEMBERED = 200_000


@dataclass(frozen=True)
class Item:
    """One file of what a use means."""

    path: str  # in the tree that the script sees
    datastore: str
    stored: Stored


@dataclass(frozen=True)
class Found:
    """All files of a use. ``alone``: it is one file, and the script gets its path rather than that of a folder."""

    items: tuple[Item, ...]
    alone: bool = False

    @property
    def size(self) -> int:
        return sum(item.stored.size for item in self.items)


@dataclass(frozen=True)
class Tree:
    """Files by content, with where each content is on this machine: ready to be read here, or to travel on."""

    key: str
    leaves: tuple[Leaf, ...]
    contents: dict[str, Path]  # digest -> a file that has it
    alone: bool

    @property
    def size(self) -> int:
        return sum(leaf.size for leaf in self.leaves)


class Provider:
    """``open`` and ``of_dataset`` are said by the room of datasets, which knows more places, and what it means."""

    def __init__(self, stores: Datastores, cache: Cache) -> None:
        self.stores, self.cache = stores, cache
        self.open: Callable[[str], DataStore] = stores.open
        self.of_dataset: Callable[[DataUse], Found] | None = None
        # the datastore and the file or folder of this machine that a dataset is, if it is one
        self.whole_dataset: Callable[[DataUse], tuple[str, str] | None] = lambda use: None
        self.ready: dict[tuple[str, str], tuple[Tree, Found]] = {}  # by run and use: gathered before its start
        self._grown = True  # since room was made in the cache
        self._brought: dict[str, str] = {}  # what came since the yard was started, before it is written down

    def found(self, use: DataUse, say: Say, abandoned: threading.Event) -> Found:
        """Lists it. Raises UserErrorException if there is nothing."""
        if use.dataset is not None:
            if self.of_dataset is None:
                raise UserErrorException(f"the dataset of {use.name!r} cannot be read here")
            return self.of_dataset(use)
        prefix = clean_path(use.path)
        store = self.open(use.datastore)
        progress = Progress()
        progress.changed = lambda: say(f"data {use.label}: {progress.doing}") if progress.doing else None
        listed = copy.patiently(lambda: list(store.list(prefix)), progress, abandoned)
        refuse_clashes(stored.path for stored in listed)
        local = store.local_path(prefix)
        if not listed and prefix and not (local is not None and local.is_dir()):
            raise nothing_there(use)
        alone = len(listed) == 1 and listed[0].path == prefix
        above = prefix.rpartition("/")[0] if alone else prefix
        cut = len(above) + 1 if above else 0
        items = (Item(stored.path[cut:], use.datastore, stored) for stored in listed)
        return Found(tuple(sorted(items, key=lambda item: item.path)), alone)

    def is_here(self, use: DataUse) -> bool:
        """Whether its files are on this machine, wherever."""
        return self.open(use.datastore).is_here if use.dataset is None else self.in_place(use) is not None

    def must_be_there(self, use: DataUse) -> None:
        """Asked at once, so only of what is on this machine."""
        store = self.open(use.datastore)
        if self.in_place(use) is None and store.is_here and next(store.list(clean_path(use.path)), None) is None:
            raise nothing_there(use)

    def in_place(self, use: DataUse) -> Path | None:
        """The file or folder itself, where it is on this machine and nothing has to be brought."""
        if use.dataset is None:
            path = self.open(use.datastore).local_path(clean_path(use.path))
            if path is not None and not path.exists():
                raise nothing_there(use)
            return path
        whole = self.whole_dataset(use)
        return self.open(whole[0]).local_path(whole[1]) if whole is not None else None

    def gather(
        self, name: str, found: Found, say: Say, abandoned: threading.Event, *, link: bool = True, told: bool = False
    ) -> Tree:
        """Brings what is not in the cache yet. ``link=False``: files that are on this machine are used where they are,
        as when they are only to travel on. ``told``: that all is here has been said before."""
        progress = Progress(files=len(found.items), bytes=found.size)
        telling = _Telling(name, progress, say)
        progress.changed = telling.tell
        places: dict[str, Place] = {}
        seen: dict[str, dict[str, tuple[str, str]]] = {}
        paths: dict[str, list[str]] = defaultdict(list)
        for item in found.items:
            paths[item.datastore].append(item.stored.path)
        for datastore, some in paths.items():
            places[datastore] = Place(datastore, self.open(datastore), self.stores.seen)
            seen[datastore] = self.stores.seen.of(datastore, some)
        leaves: dict[str, Leaf] = {}
        contents: dict[str, Path] = {}
        notes: dict[str, list[tuple[str, str, str]]] = {name: [] for name in places}

        def one(item: Item) -> None:
            place, stored = places[item.datastore], item.stored
            known = seen[item.datastore].get(stored.path)
            if place.store.marks_are_digests:
                known = (stored.mark, stored.mark)
            local = None if link else place.store.content_path(stored)
            if local is not None:
                is_known = known is not None and known[0] == stored.mark
                digest, path = known[1] if known is not None and is_known else digest_of(local, abandoned)[0], local
                progress.done(skipped=is_known, size=stored.size)
            else:
                digest, path, stored = self._cached(place, stored, known, progress, abandoned)
            # one that was written just now may be written again before its clock ticks
            if known != (stored.mark, digest) and stored.mark and clock.now() - stored.modified_at > _SETTLED_S:
                notes[item.datastore].append((stored.path, stored.mark, digest))
            leaves[item.path] = Leaf(listed_path(item.path), digest, path.stat().st_size)
            contents[digest] = path

        try:
            copy.at_once(one, found.items, abandoned)
        finally:
            for datastore, rows in notes.items():
                self.stores.seen.add(datastore, rows)
        if not told or progress.files_skipped < progress.files:
            telling.end()
        ordered = tuple(leaves[path] for path in sorted(leaves))
        return Tree(key_of(ordered), ordered, contents, found.alone)

    def planted(self, tree: Tree, found: Found, abandoned: threading.Event) -> Path:
        """The tree on this machine's disk, for reading; held until ``cache.hold(tree.key, -1)``."""
        of_path = {item.path: item for item in found.items}

        def missing(leaf: Leaf) -> None:  # removed, or written to, since it was gathered
            item = of_path[leaf.path]
            place = Place(item.datastore, self.open(item.datastore), self.stores.seen)
            self._cached(place, item.stored, None, Progress(), abandoned)

        self.cache.hold(tree.key, 1)
        try:
            folder = self.cache.tree(tree.leaves, missing)
            if self._grown:  # else the cache is what it was, and counting it takes longer than planting
                self._grown = False
                self.cache.make_room()
        except BaseException:
            self.cache.hold(tree.key, -1)
            raise
        return folder / tree.leaves[0].path if tree.alone else folder

    def _cached(
        self,
        place: Place,
        stored: Stored,
        known: tuple[str, str] | None,
        progress: Progress,
        abandoned: threading.Event,
    ) -> tuple[str, Path, Stored]:
        """Its digest, where it is, and the version that it turned out to be."""
        name = f"{place.name}\0{stored.path}\0{stored.mark}"
        with self.cache.bringing(name):  # whoever wants the same waits, and finds it
            digest = known[1] if known is not None and known[0] == stored.mark else self._brought.get(name)
            there = self.cache.content(digest) if digest else None
            if digest and there is not None:
                progress.done(skipped=True, size=stored.size)
                return digest, there, stored
            arriving = self.cache.incoming(name)
            fresh, digest = copy.fetch(place, stored, arriving, known, progress, abandoned)
            path = self.cache.take(digest, arriving)
            self._grown = True
            if stored.mark and fresh == stored:
                if len(self._brought) > _REMEMBERED:
                    self._brought.clear()
                self._brought[name] = digest
        progress.done()
        return digest, path, fresh


class _Telling:
    """`downloading data mnist 120/400 MB`, at most once a second."""

    def __init__(self, name: str, progress: Progress, say: Say) -> None:
        self._name, self._progress, self._say = name, progress, say
        self._began = self._told_at = clock.monotonic()
        self._lock = threading.Lock()
        self._told = False

    def tell(self) -> None:
        now = clock.monotonic()
        with self._lock:
            if now - self._told_at < _SAY_EVERY_S:
                return
            self._told_at, self._told = now, True
        self._say(self._text())

    def end(self) -> None:
        progress = self._progress
        fetched = progress.files_done - progress.files_skipped
        took = clock.duration_text(clock.monotonic() - self._began)
        if fetched:
            self._say(f"data {self._name}: {fetched:,} of {progress.files:,} files brought in {took}")
        else:
            self._say(f"data {self._name}: all {progress.files:,} files were here already")

    def _text(self) -> str:
        progress = self._progress
        of = f"{progress.bytes_done / 1e6:,.0f}/{progress.bytes / 1e6:,.0f} MB"
        files = f" ({progress.files_done:,}/{progress.files:,} files)" if progress.files > 1 else ""
        waiting = f"; {progress.doing}" if progress.doing else ""
        return f"downloading data {self._name} {of}{files}{waiting}"


def nothing_there(use: DataUse) -> UserErrorException:
    where = f"{use.path!r} of datastore {use.datastore!r}" if use.path else f"datastore {use.datastore!r}"
    return UserErrorException(
        f"there is nothing at {where}, which the run should {use.mode}",
        hint=f"runyard data ls {use.datastore} shows what is there; as_upload() is for what a script writes",
        path=use.path,
    )
