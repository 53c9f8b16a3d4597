"""The datastores of a yard, by name: registered, opened when they are needed, and one of them the default."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.data import backends
from runyard.data.base import DataStore
from runyard.data.secrets import Secrets
from runyard.errors import UserErrorException
from runyard.spec.data import DEFAULT_STORE
from runyard.store.database import Database
from runyard.store.datastores import DatastoreRecord, DatastoreStore, SeenFiles

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_LOOKED_AT = 1


class Datastores:
    def __init__(self, database: Database, home: Path) -> None:
        self.seen = SeenFiles(database)
        self._records = DatastoreStore(database)
        self._secrets = Secrets(home)
        self._home = home
        self._own: dict[str, DataStore] = {}  # of the yard itself, besides the default one
        self._opened: dict[str, DataStore] = {}
        self._lock = threading.Lock()

    def add_own(self, name: str, store: DataStore) -> None:
        """It is there without being registered, and stays."""
        self._own[name] = store

    def all(self) -> list[DatastoreRecord]:
        found = [record for record in self._records.all() if record.name not in self._own]
        if all(record.name != DEFAULT_STORE for record in found):
            found.insert(0, self._first())
        if not any(record.is_default for record in found):
            found = [replace(record, is_default=record.name == DEFAULT_STORE) for record in found]
        own = [DatastoreRecord(name, store.kind, {}, False, self._made_at()) for name, store in self._own.items()]
        return found + own

    def record(self, name: str) -> DatastoreRecord:
        everything = self.all()
        for record in everything:
            if record.name == name:
                return record
        raise UserErrorException(
            f"no datastore named {name!r}", hint=f"datastores here: {', '.join(r.name for r in everything)}"
        )

    @property
    def default(self) -> DatastoreRecord:
        return next(record for record in self.all() if record.is_default)

    def open(self, name: str) -> DataStore:
        """Kept open: a connection that is warm saves more than any other trick."""
        if name in self._own:
            return self._own[name]
        with self._lock:
            if name not in self._opened:
                record = self.record(name)
                self._opened[name] = backends.opened(name, record.kind, record.configuration, self._secrets.get(name))
            return self._opened[name]

    def open_to_write(self, name: str) -> DataStore:
        store = self.open(name)
        if not store.writable:
            raise UserErrorException(
                f"datastore {name!r} has the files of runs, and can only be read",
                hint="what a script writes to ./outputs comes there; other files belong into another datastore",
            )
        return store

    def register(
        self, name: str, kind: str, given: Mapping[str, Any], *, overwrite: bool = False, unseen: bool = False
    ) -> DatastoreRecord:
        """``unseen``: it is not asked whether it lets us in."""
        if not _NAME.fullmatch(name):
            raise UserErrorException(
                f"{name!r} cannot be the name of a datastore",
                hint="a letter or digit first, then letters, digits, '_', '-' and '.'",
            )
        shown, secrets = backends.split(kind, given)
        known = self._records.get(name)
        if name == DEFAULT_STORE or name in self._own:
            raise UserErrorException(f"{name!r} is the yard's own datastore", hint="give yours another name")
        if known is not None and not overwrite and (known.kind, known.configuration) != (kind, shown):
            raise UserErrorException(
                f"there is a datastore {name!r} already, for another place", hint="overwrite=True registers it anew"
            )
        candidate = backends.opened(name, kind, shown, secrets or self._kept(known, kind, shown))
        if not unseen:  # before anything is written: a typing error in a key is told to whoever made it
            list(itertools.islice(candidate.list(), _LOOKED_AT))
        if secrets or known is None or known.configuration != shown:
            self._secrets.put(name, secrets)
        record = self._records.put(name, kind, shown)
        with self._lock:
            self._opened.pop(name, None)
        return record

    def make_default(self, name: str) -> None:
        self.open_to_write(name)
        if self.record(name).name == DEFAULT_STORE and self._records.get(name) is None:
            self._records.put(DEFAULT_STORE, backends.FOLDER, self._first().configuration)
        self._records.make_default(name)

    def unregister(self, name: str) -> None:
        """What is in it stays."""
        record = self.record(name)
        if name == DEFAULT_STORE:
            raise UserErrorException(
                f"{name!r} is the yard's own datastore, and stays", hint="its files can be deleted"
            )
        if name in self._own:
            raise UserErrorException(f"{name!r} is the yard's own datastore, and stays")
        self._records.remove(record.name)
        self._secrets.put(name, {})
        with self._lock:
            self._opened.pop(name, None)

    def has_credentials(self, name: str) -> bool:
        return bool(self._secrets.get(name))

    def _kept(self, known: DatastoreRecord | None, kind: str, shown: Mapping[str, Any]) -> dict[str, str]:
        """Said again without credentials, a datastore keeps those that it has."""
        same = known is not None and (known.kind, known.configuration) == (kind, shown)
        return self._secrets.get(known.name) if known is not None and same else {}

    def _first(self) -> DatastoreRecord:
        folder = self._home / "data" / DEFAULT_STORE
        return DatastoreRecord(DEFAULT_STORE, backends.FOLDER, {"path": str(folder)}, False, self._made_at())

    def _made_at(self) -> float:
        folder = self._home / "data" / DEFAULT_STORE
        folder.mkdir(parents=True, exist_ok=True)
        return folder.stat().st_mtime
