"""Datasets of a yard: what they have now, as one digest; and the background in which that is found out."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from runyard import clock
from runyard.data.base import DataStore, Stored
from runyard.data.folder_store import digest_of as hash_of_file
from runyard.data.members import WEB, Member, Members, members_of
from runyard.data.move import Progress, at_once
from runyard.data.stores import Datastores
from runyard.data.web import Web
from runyard.errors import RunyardException
from runyard.spec.data import DatasetUse, DataUse
from runyard.spec.dataset import DatasetDefinition, digest_of
from runyard.store.datasets import Dataset, DatasetStore

_SETTLED_S = 2.0  # a file that was written since may be written again within one tick of its clock

# brings one file of a datastore to this machine, and says its SHA-256 and its size
Bring = Callable[[str, Stored, Progress, threading.Event], tuple[str, int]]


@dataclass(frozen=True)
class Pinned:
    """A dataset as it is at one moment."""

    members: Members
    digests: dict[str, str]  # by the member's name
    digest: str  # of all of them

    @property
    def files(self) -> int:
        return len(self.members.files)

    @property
    def bytes(self) -> int:
        return self.members.bytes


@dataclass
class Pinning:
    """One that is being found out; read by others while it changes."""

    progress: Progress = field(default_factory=Progress)
    ended: threading.Event = field(default_factory=threading.Event)
    found: Pinned | None = None
    error: RunyardException | None = None


class Datasets:
    def __init__(self, saved: DatasetStore, datastores: Datastores, bring: Bring) -> None:
        self.saved = saved
        self._datastores = datastores
        self._bring = bring
        self._web = Web()
        self._pinning: dict[str, Pinning] = {}
        self._lock = threading.Lock()

    def open(self, datastore: str) -> DataStore:
        return self._web if datastore == WEB else self._datastores.open(datastore)

    def members(self, definition: DatasetDefinition) -> Members:
        return members_of(definition, self.open)

    def pin(
        self, definition: DatasetDefinition, progress: Progress | None = None, abandoned: threading.Event | None = None
    ) -> Pinned:
        """Every content is read once; later its mark says that it is the same."""
        progress, abandoned = progress or Progress(), abandoned or threading.Event()
        members = self.members(definition)
        progress.files, progress.bytes = len(members.files), members.bytes
        digests: dict[str, str] = {}
        sizes: dict[str, int] = {}
        by_store: dict[str, list[Member]] = defaultdict(list)
        for member in members.files:
            by_store[member.datastore].append(member)
        for name, some in by_store.items():
            self._pin_some(name, some, digests, sizes, progress, abandoned)
        files = [replace(m, stored=replace(m.stored, size=sizes.get(m.name, m.stored.size))) for m in members.files]
        return Pinned(replace(members, files=files), digests, digest_of(digests.items()))

    def pin_for_a_while(self, definition: DatasetDefinition, wait_s: float) -> Pinning:
        """Begun in the background, or found there; returns when it has ended, or after that long."""
        key = definition.key
        with self._lock:
            pinning = self._pinning.get(key)
            if pinning is None:
                pinning = self._pinning[key] = Pinning()
                threading.Thread(
                    target=self._pin_in_background, args=(definition, pinning), name="pin", daemon=True
                ).start()
        if pinning.ended.wait(wait_s):
            with self._lock:  # the next one who asks wants to know how it is then
                if self._pinning.get(key) is pinning:
                    del self._pinning[key]
        return pinning

    def used(self, use: DataUse) -> DataUse:
        """With the name, the version and the digest of its dataset as they are now."""
        if use.dataset is None:
            return use
        known = self.saved.by_id(use.dataset.id)
        pinned = self.pin(known.definition)
        first = known.definition.sources[0]
        return replace(
            use,
            datastore=first.datastore,
            path=first.path or first.url,
            dataset=DatasetUse(known.dataset_id, known.name, known.version, pinned.digest, use.dataset.direct),
        )

    def definition_of(self, use: DataUse) -> DatasetDefinition:
        assert use.dataset is not None
        return self.saved.by_id(use.dataset.id).definition

    def save(self, wanted: Dataset, create_new_version: bool) -> Dataset:
        """With a name it is registered, without one it only gets an id."""
        pinned = self.pin(wanted.definition)
        if wanted.name is None:
            return self.saved.save(wanted.definition, pinned.digest, pinned.files, pinned.bytes)
        known = replace(wanted, digest=pinned.digest, files=pinned.files, bytes=pinned.bytes)
        return self.saved.register(known, create_new_version)

    def _pin_in_background(self, definition: DatasetDefinition, pinning: Pinning) -> None:
        try:
            pinning.found = self.pin(definition, pinning.progress)
        except RunyardException as error:
            pinning.error = error
        except Exception as error:
            pinning.error = RunyardException(
                f"the dataset could not be read: {type(error).__name__}: {error}", hint="see yard.log"
            )
            raise
        finally:
            pinning.ended.set()

    def _pin_some(
        self,
        name: str,
        members: list[Member],
        digests: dict[str, str],
        sizes: dict[str, int],
        progress: Progress,
        abandoned: threading.Event,
    ) -> None:
        """The files of one datastore."""
        store = self.open(name)
        known = self._known(name, members)
        fresh: list[tuple[str, str, str]] = []

        def one(member: Member) -> None:
            stored = member.stored
            mark, digest = known.get(stored.path, ("", ""))
            if mark != stored.mark:
                local = store.local_path(stored.path)
                if local is not None:
                    digest, mark = hash_of_file(local, abandoned)
                    progress.moved(stored.size)
                    if mark == stored.mark and clock.now() - stored.modified_at > _SETTLED_S:
                        fresh.append((stored.path, mark, digest))
                else:
                    digest, sizes[member.name] = self._bring(name, stored, progress, abandoned)
            digests[member.name] = digest
            progress.done()

        try:
            at_once(one, members, abandoned)
        finally:
            self._datastores.seen.add(name, fresh)

    def _known(self, name: str, members: list[Member]) -> dict[str, tuple[str, str]]:
        seen = self._datastores.seen
        if name == WEB:
            found: dict[str, tuple[str, str]] = {}
            for member in members:
                found.update(seen.below(name, member.stored.path))
            return found
        folders = [member.stored.path.rpartition("/")[0] for member in members]
        return seen.below(name, os.path.commonpath(folders))
