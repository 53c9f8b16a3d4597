"""The registered datastores of a yard, by name; opened on first use. One of them is the default."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.data import backends
from runyard.data.base import DataStore
from runyard.data.secrets import Secrets
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.data import DEFAULT_STORE
from runyard.store.database import Database
from runyard.store.datastores import DatastoreRecord, DatastoreStore, FileDigests

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


class Datastores:
    def __init__(self, database: Database, home: Path) -> None:
        self.digests = FileDigests(database)
        self._records = DatastoreStore(database)
        self._secrets = Secrets(home)
        with suppress(RunyardException, OSError):  # reported when a datastore is used
            self._secrets.encrypt()
        self._home = home
        self._builtin: dict[str, DataStore] = {}  # in addition to the default one
        self._open: dict[str, DataStore] = {}
        self._lock = threading.Lock()
        # Held from the check of an existing registration until record and credentials are stored: they are in two
        # files, and those of two concurrent registrations must not be mixed. The yard is the only writer of both.
        self._registering = threading.Lock()

    def add_builtin(self, name: str, store: DataStore) -> None:
        """Add a datastore that needs no registration and cannot be removed."""
        self._builtin[name] = store

    def all(self) -> list[DatastoreRecord]:
        records = [record for record in self._records.all() if record.name not in self._builtin]
        if all(record.name != DEFAULT_STORE for record in records):
            records.insert(0, self._initial_default())
        if not any(record.is_default for record in records):
            records = [replace(record, is_default=record.name == DEFAULT_STORE) for record in records]
        created_at = self._created_at()
        builtin = [DatastoreRecord(name, store.kind, {}, False, created_at) for name, store in self._builtin.items()]
        return records + builtin

    def record(self, name: str) -> DatastoreRecord:
        records = {record.name: record for record in self.all()}
        if name not in records:
            raise UserErrorException(f"no datastore named {name!r}", hint=f"datastores here: {', '.join(records)}")
        return records[name]

    @property
    def default(self) -> DatastoreRecord:
        return next(record for record in self.all() if record.is_default)

    def open(self, name: str) -> DataStore:
        """Open a datastore once and keep it open: reusing its connections saves the most time."""
        if name in self._builtin:
            return self._builtin[name]
        with self._lock:
            if name not in self._open:
                record = self.record(name)
                secrets = self._secrets.get(name)
                self._open[name] = backends.open_store(name, record.kind, record.configuration, secrets)
            return self._open[name]

    def open_to_write(self, name: str) -> DataStore:
        store = self.open(name)
        if not store.writable:
            raise UserErrorException(
                f"datastore {name!r} contains the files of runs and is read-only",
                hint="files that a script writes to ./outputs are stored there; use another datastore for other files",
            )
        return store

    def register(
        self,
        name: str,
        kind: str,
        configuration: Mapping[str, Any],
        *,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> DatastoreRecord:
        """Register a datastore, after listing it once to check the access unless ``skip_validation``.

        Registering the same configuration again without credentials keeps the stored ones.
        """
        if not _NAME.fullmatch(name):
            raise UserErrorException(
                f"invalid datastore name {name!r}",
                hint="it must start with a letter or digit, followed by letters, digits, '_', '-' and '.'",
            )
        public, secrets = backends.split_credentials(kind, configuration)
        if name == DEFAULT_STORE or name in self._builtin:
            raise UserErrorException(f"{name!r} is a built-in datastore", hint="use another name")
        existing = self._replaceable(name, kind, public, overwrite)
        is_same = existing is not None and (existing.kind, existing.configuration) == (kind, public)
        candidate = backends.open_store(name, kind, public, secrets or (self._secrets.get(name) if is_same else {}))
        if not skip_validation:  # before anything is stored, so that a mistyped key is reported right here
            list(itertools.islice(candidate.list(), 1))  # without the lock: it may take seconds
        with self._registering:
            existing = self._replaceable(name, kind, public, overwrite)
            if secrets or existing is None or existing.configuration != public:
                self._secrets.put(name, secrets)
            record = self._records.put(name, kind, public)
            with self._lock:
                self._open.pop(name, None)
        return record

    def make_default(self, name: str) -> None:
        self.open_to_write(name)
        with self._registering:
            if self.record(name).name == DEFAULT_STORE and self._records.get(name) is None:
                self._records.put(DEFAULT_STORE, backends.FOLDER, self._initial_default().configuration)
            self._records.make_default(name)

    def unregister(self, name: str) -> None:
        """Remove the registration; the files in the datastore are not touched."""
        record = self.record(name)
        if name == DEFAULT_STORE or name in self._builtin:
            raise UserErrorException(
                f"{name!r} is a built-in datastore and cannot be removed",
                hint="delete its files instead" if name == DEFAULT_STORE else "",
            )
        with self._registering:
            self._records.remove(record.name)
            self._secrets.put(name, {})
            with self._lock:
                self._open.pop(name, None)

    def has_credentials(self, name: str) -> bool:
        return bool(self._secrets.get(name))

    def _replaceable(self, name: str, kind: str, public: Mapping[str, Any], overwrite: bool) -> DatastoreRecord | None:
        """The existing registration, or None; an error if it differs and must not be overwritten."""
        existing = self._records.get(name)
        if existing is not None and not overwrite and (existing.kind, existing.configuration) != (kind, public):
            raise UserErrorException(
                f"a datastore {name!r} with another configuration exists already",
                hint="overwrite=True replaces its registration",
            )
        return existing

    def _initial_default(self) -> DatastoreRecord:
        configuration = {"path": str(self._default_folder)}
        return DatastoreRecord(DEFAULT_STORE, backends.FOLDER, configuration, False, self._created_at())

    @property
    def _default_folder(self) -> Path:
        return self._home / "data" / DEFAULT_STORE

    def _created_at(self) -> float:
        self._default_folder.mkdir(parents=True, exist_ok=True)
        return self._default_folder.stat().st_mtime
