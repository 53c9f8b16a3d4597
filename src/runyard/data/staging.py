"""Stages the input data of runs: lists it, downloads remote files into the cache, and reports progress."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.data import copy
from runyard.data.base import (
    DataStore,
    ProgressCallback,
    StoredFile,
    check_path_conflicts,
    clean_path,
    recorded_digest,
    safe_path,
)
from runyard.data.cache import Cache, Leaf, key_of
from runyard.data.copy import NamedStore, Progress
from runyard.data.folder_store import digest_of
from runyard.data.registry import Datastores
from runyard.errors import UserErrorException
from runyard.spec.data import DataUse

_REPORT_EVERY_S = 1.0
_SETTLED_S = 2.0  # a file modified more recently may change again without a new time stamp
_MAX_REMEMBERED = 200_000


@dataclass(frozen=True)
class InputFile:
    path: str  # in the tree that the script sees
    datastore: str
    stored: StoredFile


@dataclass(frozen=True)
class InputFiles:
    """All files of a data use."""

    files: tuple[InputFile, ...]
    is_single_file: bool = False  # the script receives the path of the file, not of a folder

    @property
    def size(self) -> int:
        return sum(file.stored.size for file in self.files)


@dataclass(frozen=True)
class Tree:
    """Input files whose contents are all on this machine, ready to be read or sent to a host."""

    key: str
    leaves: tuple[Leaf, ...]
    contents: dict[str, Path]  # digest -> a file with this content
    is_single_file: bool

    @property
    def size(self) -> int:
        return sum(leaf.size for leaf in self.leaves)


class Stager:
    """Stages data from datastores; ``Datasets`` replaces the callbacks, to resolve datasets and web files."""

    def __init__(self, stores: Datastores, cache: Cache) -> None:
        self.stores, self.cache = stores, cache
        self.open: Callable[[str], DataStore] = stores.open
        self.list_dataset: Callable[[DataUse], InputFiles] | None = None
        # the datastore and path of a dataset that is one local file or folder; None for other datasets
        self.local_dataset: Callable[[DataUse], tuple[str, str] | None] = lambda use: None
        self.prefetched: dict[tuple[str, str], tuple[Tree, InputFiles]] = {}  # by run and use
        self._cache_grew = True  # since the last eviction
        self._recent_digests: dict[str, str] = {}  # of this process, before they are recorded in the database

    def list_files(self, use: DataUse, report: ProgressCallback, canceled: threading.Event) -> InputFiles:
        """List the files of a data use. Raises UserErrorException if there are none."""
        if use.dataset is not None:
            if self.list_dataset is None:
                raise UserErrorException(f"the dataset of {use.name!r} cannot be read here")
            return self.list_dataset(use)
        prefix = clean_path(use.path)
        store = self.open(use.datastore)
        progress = Progress()
        progress.on_change = lambda: report(f"data {use.label}: {progress.activity}") if progress.activity else None
        listing = copy.retry_while_unreachable(lambda: list(store.list(prefix)), progress, canceled)
        check_path_conflicts(stored.path for stored in listing)
        local = store.local_path(prefix)
        if not listing and prefix and not (local is not None and local.is_dir()):
            raise _no_data_error(use)
        is_single_file = len(listing) == 1 and listing[0].path == prefix
        folder = prefix.rpartition("/")[0] if is_single_file else prefix
        start = len(folder) + 1 if folder else 0
        files = (InputFile(stored.path[start:], use.datastore, stored) for stored in listing)
        return InputFiles(tuple(sorted(files, key=lambda file: file.path)), is_single_file)

    def is_local(self, use: DataUse) -> bool:
        """True if the files are on this machine's disk, in one folder or in several."""
        return self.open(use.datastore).is_local if use.dataset is None else self.local_path(use) is not None

    def check_exists(self, use: DataUse) -> None:
        """Raise if local data does not exist. Remote data is not checked, because callers wait for this."""
        store = self.open(use.datastore)
        if self.local_path(use) is None and store.is_local and next(store.list(clean_path(use.path)), None) is None:
            raise _no_data_error(use)

    def local_path(self, use: DataUse) -> Path | None:
        """The file or folder itself if it is on this machine; None if its files must be copied or downloaded."""
        if use.dataset is None:
            path = self.open(use.datastore).local_path(clean_path(use.path))
            if path is not None and not path.exists():
                raise _no_data_error(use)
            return path
        source = self.local_dataset(use)
        return self.open(source[0]).local_path(source[1]) if source is not None else None

    def fetch(
        self,
        name: str,
        inputs: InputFiles,
        report: ProgressCallback,
        canceled: threading.Event,
        *,
        cache_local_files: bool = True,
        report_cached: bool = True,
    ) -> Tree:
        """Download all files that are not in the cache.

        Args:
            name: Of the data, for progress messages.
            inputs: The files to fetch.
            report: Receives progress messages.
            canceled: Set by another thread to stop.
            cache_local_files: False: use files on this machine's disk in place, for example to send them to a host.
            report_cached: Report also if all files were cached already.
        """
        progress = Progress(files=len(inputs.files), bytes=inputs.size)
        reporter = _ProgressReporter(name, progress, report)
        progress.on_change = reporter.update
        paths: dict[str, list[str]] = defaultdict(list)
        for file in inputs.files:
            paths[file.datastore].append(file.stored.path)
        stores = {datastore: self._named_store(datastore) for datastore in paths}
        records = {datastore: self.stores.digests.for_paths(datastore, names) for datastore, names in paths.items()}
        leaves: dict[str, Leaf] = {}
        contents: dict[str, Path] = {}
        new_records: dict[str, list[tuple[str, str, str]]] = {datastore: [] for datastore in paths}

        def fetch_file(file: InputFile) -> None:
            store, stored = stores[file.datastore], file.stored
            record = records[file.datastore].get(stored.path)
            if store.store.etags_are_digests:
                record = (stored.etag, stored.etag)
            local = None if cache_local_files else store.store.content_path(stored)
            if local is not None:
                known_digest = recorded_digest(record, stored)
                digest, path = known_digest or digest_of(local, canceled)[0], local
                progress.add_file(skipped=known_digest is not None, size=stored.size)
            else:
                digest, path, stored = self._fetch_to_cache(store, stored, record, progress, canceled)
            if record != (stored.etag, digest) and stored.etag and clock.now() - stored.modified_at > _SETTLED_S:
                new_records[file.datastore].append((stored.path, stored.etag, digest))
            leaves[file.path] = Leaf(safe_path(file.path), digest, path.stat().st_size)
            contents[digest] = path

        try:
            copy.run_parallel(fetch_file, inputs.files, canceled)
        finally:
            for datastore, rows in new_records.items():
                self.stores.digests.add(datastore, rows)
        if report_cached or progress.files_skipped < progress.files:
            reporter.finish()
        ordered = tuple(leaves[path] for path in sorted(leaves))
        return Tree(key_of(ordered), ordered, contents, inputs.is_single_file)

    def materialize(self, tree: Tree, inputs: InputFiles, canceled: threading.Event) -> Path:
        """Create the read-only folder of a fetched tree; return its path, or that of its single file."""
        files = {file.path: file for file in inputs.files}

        def fetch_missing(leaf: Leaf) -> None:  # evicted or modified since the tree was fetched
            file = files[leaf.path]
            self._fetch_to_cache(self._named_store(file.datastore), file.stored, None, Progress(), canceled)

        self.cache.hold(tree.key)
        try:
            folder = self.cache.tree(tree.leaves, fetch_missing)
            if self._cache_grew:  # counting the cache takes longer than creating the folder
                self._cache_grew = False
                self.cache.evict()
        finally:
            self.cache.release(tree.key)
        return folder / tree.leaves[0].path if tree.is_single_file else folder

    def _named_store(self, datastore: str) -> NamedStore:
        return NamedStore(datastore, self.open(datastore), self.stores.digests)

    def _fetch_to_cache(
        self,
        store: NamedStore,
        stored: StoredFile,
        record: tuple[str, str] | None,
        progress: Progress,
        canceled: threading.Event,
    ) -> tuple[str, Path, StoredFile]:
        """The file's digest, its path in the cache, and the version that was downloaded."""
        name = f"{store.name}\0{stored.path}\0{stored.etag}"
        with self.cache.download_lock(name):
            digest = recorded_digest(record, stored) or self._recent_digests.get(name)
            content = self.cache.content(digest) if digest else None
            if digest and content is not None:
                progress.add_file(skipped=True, size=stored.size)
                return digest, content, stored
            target = self.cache.incoming_path(name)
            version, digest = copy.download_file(store, stored, target, record, progress, canceled)
            content = self.cache.add(digest, target)
            self._cache_grew = True
            if stored.etag and version == stored:
                if len(self._recent_digests) > _MAX_REMEMBERED:
                    self._recent_digests.clear()
                self._recent_digests[name] = digest
        progress.add_file()
        return digest, content, version


class _ProgressReporter:
    """Reports lines such as ``downloading data mnist 120/400 MB``, at most once per second."""

    def __init__(self, name: str, progress: Progress, report: ProgressCallback) -> None:
        self._name, self._progress, self._report = name, progress, report
        self._started_at = self._reported_at = clock.monotonic()
        self._lock = threading.Lock()

    def update(self) -> None:
        now = clock.monotonic()
        with self._lock:
            if now - self._reported_at < _REPORT_EVERY_S:
                return
            self._reported_at = now
        progress = self._progress
        size = f"{progress.bytes_done / 1e6:,.0f}/{progress.bytes / 1e6:,.0f} MB"
        files = f" ({progress.files_done:,}/{progress.files:,} files)" if progress.files > 1 else ""
        activity = f"; {progress.activity}" if progress.activity else ""
        self._report(f"downloading data {self._name} {size}{files}{activity}")

    def finish(self) -> None:
        progress = self._progress
        downloaded = progress.files_done - progress.files_skipped
        duration = clock.duration_text(clock.monotonic() - self._started_at)
        if downloaded:
            self._report(f"data {self._name}: downloaded {downloaded:,} of {progress.files:,} files in {duration}")
        else:
            self._report(f"data {self._name}: all {progress.files:,} files are cached")


def _no_data_error(use: DataUse) -> UserErrorException:
    location = f"{use.path!r} of datastore {use.datastore!r}" if use.path else f"datastore {use.datastore!r}"
    return UserErrorException(
        f"no files at {location}, which the run should {use.mode}",
        hint=f"list the datastore with runyard data ls {use.datastore}; use as_upload() for files that a script writes",
        path=use.path,
    )
