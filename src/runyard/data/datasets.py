"""Datasets of a yard: which files they have now, and the digest of all contents; and how a run is given them."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard import clock
from runyard.data.base import DataStore, Stored
from runyard.data.cache import Leaf, key_of
from runyard.data.dataset_files import Member, Members, members_of, whole_of
from runyard.data.http_store import WEB, Web
from runyard.data.staging import Found, Item, Provider
from runyard.errors import RunyardException
from runyard.spec.data import DatasetUse, DataUse
from runyard.spec.dataset import DatasetDefinition
from runyard.store.datasets import Dataset, DatasetStore

log = logging.getLogger(__name__)
Say = Callable[[str], None]
_FETCHED_WITHIN_S = 30.0


@dataclass(frozen=True)
class Pinned:
    """A dataset as it is at one moment."""

    digest: str  # the same files with the same contents have the same one, wherever they are
    files: int
    bytes: int


@dataclass
class Pinning:
    """One that is being found out; read by others while it changes."""

    doing: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    found: Pinned | None = None
    error: RunyardException | None = None
    ended_at: float = 0.0  # set before ``ended`` is

    @property
    def is_old(self) -> bool:
        return self.ended.is_set() and clock.monotonic() - self.ended_at > _FETCHED_WITHIN_S


class Datasets:
    def __init__(self, saved: DatasetStore, provider: Provider) -> None:
        self.saved = saved
        self._provider = provider
        self._pinning: dict[str, Pinning] = {}
        self._lock = threading.Lock()
        self._web = Web(self._kept)
        provider.of_dataset, provider.whole_dataset, provider.open = self.found, self.whole, self.open

    def open(self, datastore: str) -> DataStore:
        return self._web if datastore == WEB else self._provider.stores.open(datastore)

    def members(self, definition: DatasetDefinition) -> Members:
        return members_of(definition, self.open)

    def pin(self, definition: DatasetDefinition, say: Say = lambda _: None) -> Pinned:
        """Every content is read once, or brought from afar; later its mark says that it is the same."""
        members = self.members(definition)
        leaves, unread = self._known(members)
        if unread:
            found = Found(tuple(Item(one.name, one.datastore, one.stored) for one in unread))
            leaves += self._provider.gather("of the dataset", found, say, threading.Event(), link=False).leaves
        return Pinned(key_of(leaves), len(leaves), sum(leaf.size for leaf in leaves))

    def pin_for_a_while(self, definition: DatasetDefinition, wait_s: float) -> Pinning:
        """Begun in the background, or found there; returns when it has ended, or after that long."""
        key = definition.key
        with self._lock:
            # what nobody came back for says how it was then: days later it would be a wrong digest
            self._pinning = {known: one for known, one in self._pinning.items() if not one.is_old}
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

    def save(self, wanted: Dataset, create_new_version: bool) -> Dataset:
        """With a name it is registered, without one it only gets an id."""
        pinned = self.pin(wanted.definition)
        if wanted.name is None:
            return self.saved.save(wanted.definition, pinned.digest, pinned.files, pinned.bytes)
        known = replace(wanted, digest=pinned.digest, files=pinned.files, bytes=pinned.bytes)
        return self.saved.register(known, create_new_version)

    def used(self, use: DataUse) -> DataUse:
        """With the name, the version and the digest that its dataset has now."""
        assert use.dataset is not None
        known = self.saved.by_id(use.dataset.id)
        first = known.definition.sources[0]
        digest = self.pin(known.definition).digest
        return replace(
            use,
            datastore=first.datastore,
            path=first.path or first.url,
            dataset=DatasetUse(known.dataset_id, known.name, known.version, digest, use.dataset.direct),
        )

    def found(self, use: DataUse) -> Found:
        """Its files, for whoever brings them to a run."""
        return _found(self.members(self.definition_of(use)))

    def whole(self, use: DataUse) -> tuple[str, str] | None:
        """The datastore and the file or folder of this machine that it is all of, if it is one; nothing is listed."""
        return whole_of(self.definition_of(use), self.open)

    def here(self, definition: DatasetDefinition) -> Path:
        """Where its files can be read on this machine; brought there if they are not."""
        whole = whole_of(definition, self.open)
        place = self.open(whole[0]).local_path(whole[1]) if whole else None
        if place is not None:
            return place
        found, forever = _found(self.members(definition)), threading.Event()
        tree = self._provider.gather("of the dataset", found, lambda _: None, forever)
        path = self._provider.planted(tree, found, forever)
        self._provider.cache.hold(tree.key, -1)
        return path

    def definition_of(self, use: DataUse) -> DatasetDefinition:
        assert use.dataset is not None
        return self.saved.by_id(use.dataset.id).definition

    def _kept(self, url: str) -> Stored | None:
        mark, digest = self._provider.stores.seen.below(WEB, url).get(url, ("", ""))
        content = self._provider.cache.content(digest) if digest else None
        return Stored(url, content.stat().st_size, mark) if content is not None else None

    def _known(self, members: Members) -> tuple[list[Leaf], list[Member]]:
        """Those whose mark says what they are, and the others."""
        paths: dict[str, list[str]] = defaultdict(list)
        for member in members.files:
            paths[member.datastore].append(member.stored.path)
        seen = {datastore: self._provider.stores.seen.of(datastore, some) for datastore, some in paths.items()}
        leaves, unread = [], []
        for member in members.files:
            stored = member.stored
            mark, digest = seen[member.datastore].get(stored.path, ("", ""))
            if digest and mark == stored.mark:
                leaves.append(Leaf(member.name, digest, stored.size))
            else:
                unread.append(member)
        return leaves, unread

    def _pin_in_background(self, definition: DatasetDefinition, pinning: Pinning) -> None:
        def say(text: str) -> None:
            pinning.doing = text

        try:
            pinning.found = self.pin(definition, say)
        except RunyardException as error:
            pinning.error = error
        except Exception as error:  # whoever waits must hear of it
            log.exception("reading a dataset")
            pinning.error = RunyardException(f"the dataset could not be read: {error}", hint="see yard.log")
        finally:
            pinning.ended_at = clock.monotonic()
            pinning.ended.set()


def _found(members: Members) -> Found:
    items = (Item(member.name, member.datastore, member.stored) for member in members.files)
    return Found(tuple(items), members.single)
