"""The datasets of a yard: their current files, the digest of all contents, and their use by runs."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard import clock
from runyard.data import http_store
from runyard.data.base import DataStore, ProgressCallback, StoredFile, recorded_digest
from runyard.data.cache import Leaf, key_of
from runyard.data.dataset_files import ResolvedFile, ResolvedFiles, local_source, resolve_files
from runyard.data.staging import InputFile, InputFiles, Stager
from runyard.errors import RunyardException
from runyard.spec.data import DatasetUse, DataUse
from runyard.spec.dataset import DatasetDefinition
from runyard.store.datasets import Dataset, DatasetStore

log = logging.getLogger(__name__)
_RESULT_LIFETIME_S = 30.0
_PROGRESS_NAME = "of the dataset"


@dataclass(frozen=True)
class Pin:
    """The content of a dataset at one point in time."""

    digest: str  # equal for equal file names and contents, in any datastore
    files: int
    bytes: int


@dataclass
class PinJob:
    """A pin that is computed in the background; read by other threads."""

    activity: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    result: Pin | None = None
    error: RunyardException | None = None
    ended_at: float = 0.0  # set before ``ended``

    @property
    def is_expired(self) -> bool:
        return self.ended.is_set() and clock.monotonic() - self.ended_at > _RESULT_LIFETIME_S


class Datasets:
    def __init__(self, saved: DatasetStore, stager: Stager) -> None:
        self.saved = saved
        self._stager = stager
        self._jobs: dict[str, PinJob] = {}
        self._lock = threading.Lock()
        self._web = http_store.HttpStore(self._cached_web_file)
        stager.list_dataset, stager.local_dataset, stager.open = self._input_files, self._local_source, self.open

    def open(self, datastore: str) -> DataStore:
        return self._web if datastore == http_store.NAME else self._stager.stores.open(datastore)

    def files(self, definition: DatasetDefinition) -> ResolvedFiles:
        return resolve_files(definition, self.open)

    def pin(self, definition: DatasetDefinition, report: ProgressCallback = lambda _: None) -> Pin:
        """Compute the digest of a dataset. Reads or downloads each file once; later its etag identifies it."""
        leaves, unread = self._known_leaves(self.files(definition))
        if unread:
            inputs = _as_inputs(unread)
            tree = self._stager.fetch(_PROGRESS_NAME, inputs, report, threading.Event(), cache_local_files=False)
            leaves += tree.leaves
        return Pin(key_of(leaves), len(leaves), sum(leaf.size for leaf in leaves))

    def pin_in_background(self, definition: DatasetDefinition, wait_s: float) -> PinJob:
        """Start or find a background job for ``pin``; return it when it has ended, or after ``wait_s`` seconds."""
        key = definition.key
        with self._lock:
            # drop results that were never collected: days later they would be wrong
            self._jobs = {key: job for key, job in self._jobs.items() if not job.is_expired}
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = PinJob()
                threading.Thread(target=self._run_job, args=(definition, job), name="pin", daemon=True).start()
        if job.ended.wait(wait_s):
            with self._lock:  # a later request must compute the digest again
                if self._jobs.get(key) is job:
                    del self._jobs[key]
        return job

    def save(self, dataset: Dataset, create_new_version: bool) -> Dataset:
        """Register a dataset with a name; without a name, only assign an id."""
        pin = self.pin(dataset.definition)
        if dataset.name is None:
            return self.saved.save(dataset.definition, pin.digest, pin.files, pin.bytes)
        pinned = replace(dataset, digest=pin.digest, files=pin.files, bytes=pin.bytes)
        return self.saved.register(pinned, create_new_version)

    def pin_use(self, use: DataUse) -> DataUse:
        """Add the current name, version and digest of the dataset to a data use."""
        assert use.dataset is not None
        dataset = self.saved.by_id(use.dataset.id)
        source = dataset.definition.sources[0]
        digest = self.pin(dataset.definition).digest
        return replace(
            use,
            datastore=source.datastore,
            path=source.path or source.url,
            dataset=DatasetUse(dataset.dataset_id, dataset.name, dataset.version, digest, use.dataset.direct),
        )

    def local_path(self, definition: DatasetDefinition) -> Path:
        """The dataset's folder or file on this machine; remote files are downloaded."""
        source = local_source(definition, self.open)
        path = self.open(source[0]).local_path(source[1]) if source else None
        if path is not None:
            return path
        dataset, never = self.files(definition), threading.Event()
        inputs = _as_inputs(dataset.files, dataset.is_single_file)
        tree = self._stager.fetch(_PROGRESS_NAME, inputs, lambda _: None, never)
        return self._stager.materialize(tree, inputs, never)

    def definition_of(self, use: DataUse) -> DatasetDefinition:
        assert use.dataset is not None
        return self.saved.by_id(use.dataset.id).definition

    def _input_files(self, use: DataUse) -> InputFiles:
        dataset = self.files(self.definition_of(use))
        return _as_inputs(dataset.files, dataset.is_single_file)

    def _local_source(self, use: DataUse) -> tuple[str, str] | None:
        return local_source(self.definition_of(use), self.open)

    def _cached_web_file(self, url: str) -> StoredFile | None:
        etag, digest = self._stager.stores.digests.in_folder(http_store.NAME, url).get(url, ("", ""))
        content = self._stager.cache.content(digest) if digest else None
        return StoredFile(url, content.stat().st_size, etag) if content is not None else None

    def _known_leaves(self, dataset: ResolvedFiles) -> tuple[list[Leaf], list[ResolvedFile]]:
        """The files whose digests are recorded, and those that must be read."""
        paths: dict[str, list[str]] = defaultdict(list)
        for file in dataset.files:
            paths[file.datastore].append(file.stored.path)
        records = {
            datastore: self._stager.stores.digests.for_paths(datastore, names) for datastore, names in paths.items()
        }
        leaves, unread = [], []
        for file in dataset.files:
            digest = recorded_digest(records[file.datastore].get(file.stored.path), file.stored)
            if digest:
                leaves.append(Leaf(file.name, digest, file.stored.size))
            else:
                unread.append(file)
        return leaves, unread

    def _run_job(self, definition: DatasetDefinition, job: PinJob) -> None:
        def report(text: str) -> None:
            job.activity = text

        try:
            job.result = self.pin(definition, report)
        except RunyardException as error:
            job.error = error
        except Exception as error:  # clients wait for this job: they must receive the error
            log.exception("reading a dataset")
            job.error = RunyardException(f"the dataset could not be read: {error}", hint="see yard.log")
        finally:
            job.ended_at = clock.monotonic()
            job.ended.set()


def _as_inputs(files: Sequence[ResolvedFile], is_single_file: bool = False) -> InputFiles:
    return InputFiles(tuple(InputFile(file.name, file.datastore, file.stored) for file in files), is_single_file)
