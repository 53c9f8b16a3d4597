"""Restores the yard's database from a backup, and adds the runs whose folders are newer than the backup."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard import clock
from runyard.errors import RunNotFound, RunyardException, StoreCorrupted, UserErrorException
from runyard.launch.order import read_order
from runyard.lifecycle.state import Attempt, End, EndReason, Life, RunState
from runyard.orchestrator.agent_events import read_events
from runyard.orchestrator.run_description import RunDescription, read_description
from runyard.posix import file_lock
from runyard.posix.atomic_write import replace_file
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.store.backups import Backup, list_backups
from runyard.store.database import Database
from runyard.store.integrity import inspect_database
from runyard.store.open_store import create_database, open_database, supported_versions
from runyard.store.runs import RunRecord, RunStore, with_life
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.artifacts import record as record_artifacts
from runyard.tracking.ingest import ingest
from runyard.tracking.series_index import system_run_id

_SIDECARS = ("", "-wal", "-shm")
_LOCK_TIMEOUT_S = 2.0
_MAX_ATTEMPTS = 1000


@dataclass(frozen=True)
class BackupInfo:
    name: str
    created_at: float
    size: int
    runs: int
    problem: str = ""


@dataclass(frozen=True)
class RestoreReport:
    backup: BackupInfo | None  # None: a new database was created
    skipped: list[BackupInfo]  # newer backups that are damaged
    moved: list[str]  # the replaced files, under their new names
    added: list[str] = field(default_factory=list)  # runs that the backup does not have
    updated: list[str] = field(default_factory=list)  # runs that had not ended when the backup was made
    not_added: list[tuple[str, str]] = field(default_factory=list)  # runs, with the reason


def describe_backups(home: Path) -> list[BackupInfo]:
    """All backups of a home folder, newest first, after checking them."""
    return [_describe(backup) for backup in list_backups(HomeFolder(home).database)]


def restore(home: Path, name: str | None = None, *, empty: bool = False) -> RestoreReport:
    """Replace the database by a backup.

    Args:
        home: The home folder, whose yard must not be running.
        name: The name or path of a backup; the newest intact one by default.
        empty: Use no backup: create a new database from the folders of the runs.

    Raises:
        UserErrorException: The yard is running, or there is no such backup.
        StoreCorrupted: The backup is damaged.
    """
    database = HomeFolder(home).database
    with _hold_yard_lock(home):
        backup, skipped = (None, []) if empty else _choose(database, name)
        moved = _move_aside(database)
        if backup is None:
            opened = create_database(database)
        else:
            with replace_file(database, durable=True) as draft:
                shutil.copyfile(backup.path, draft)
                draft.chmod(0o600)
            opened = open_database(database)
        report = RestoreReport(_describe(backup) if backup else None, skipped, [str(path) for path in moved])
        try:
            _add_runs(home, opened, report)
        finally:
            opened.close()
        return report


@contextmanager
def _hold_yard_lock(home: Path) -> Iterator[None]:
    """Keep a yard from starting during the block."""
    path = HomeFolder(home).yard_lock
    lock = file_lock.acquire(path, timeout_s=_LOCK_TIMEOUT_S)
    if lock is None:
        raise UserErrorException(
            f"the yard of {home} is running (process {file_lock.holder(path)})",
            hint="stop it first with `runyard yard stop`; runs continue",
        )
    try:
        yield
    finally:
        os.close(lock)


def _choose(database: Path, name: str | None) -> tuple[Backup, list[BackupInfo]]:
    """The backup to restore, and the damaged ones that are newer."""
    backups = list_backups(database)
    if name is not None:
        chosen = _by_name(backups, name)
        info = _describe(chosen)
        if info.problem:
            raise StoreCorrupted(
                f"the backup {chosen.path} cannot be restored: {info.problem}",
                hint="choose another one of `runyard restore --list`",
                path=str(chosen.path),
            )
        return chosen, []
    skipped: list[BackupInfo] = []
    for backup in backups:
        info = _describe(backup)
        if not info.problem:
            return backup, skipped
        skipped.append(info)
    condition = "all backups are damaged" if backups else "there is no backup"
    raise UserErrorException(
        f"{condition} in {database.parent}",
        hint="`runyard restore --empty` creates a new database from the runs' folders",
    )


def _by_name(backups: list[Backup], name: str) -> Backup:
    for backup in backups:
        if name in (backup.name, str(backup.path)):
            return backup
    path = Path(name)
    if path.is_file():
        return Backup(path, path.stat().st_mtime)
    names = ", ".join(backup.name for backup in backups)
    raise UserErrorException(f"there is no backup {name!r}", hint=f"backups: {names}" if names else "there are none")


def _describe(backup: Backup) -> BackupInfo:
    state = inspect_database(backup.path, is_static=True)
    problem = state.problems[0] if state.problems else ""
    if not problem and state.version not in supported_versions():
        problem = f"it was written by a newer version of Runyard (schema {state.version})"
    size = backup.path.stat().st_size if backup.path.exists() else 0
    return BackupInfo(backup.name, backup.created_at, size, state.runs, problem)


def _move_aside(database: Path) -> list[Path]:
    """Rename the database with its write-ahead log, which would otherwise be applied to the backup."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.now()))
    name, number = f"{database.name}.replaced-{stamp}", 1
    while any(database.with_name(name + suffix).exists() for suffix in _SIDECARS):
        number += 1
        name = f"{database.name}.replaced-{stamp}-{number}"
    moved = []
    for suffix in _SIDECARS:
        path = database.with_name(database.name + suffix)
        if path.exists():
            moved.append(path.rename(database.with_name(name + suffix)))
    return moved


def _add_runs(home: Path, database: Database, report: RestoreReport) -> None:
    """Compare the folders of runs with the database, oldest run first: a parent is added before its children."""
    store, artifacts = RunStore(database), Artifacts(database, HomeFolder(home).artifacts)
    folders = [RunFolder(path) for path in HomeFolder(home).runs.iterdir()] if HomeFolder(home).runs.is_dir() else []
    candidates: list[tuple[RunDescription, RunFolder]] = []
    for folder in folders:
        run_id = folder.root.name
        try:
            stored = store.load(run_id)
        except RunNotFound:
            stored = None
        if stored is not None and stored.life.state.is_terminal:
            continue
        try:
            candidates.append((_description(folder), folder))
        except (OSError, ValueError, RunyardException) as error:
            if stored is None:
                report.not_added.append((run_id, _reason(error)))
    for description, folder in sorted(candidates, key=lambda candidate: candidate[0].record.created_at):
        try:
            if _add_run(store, description, folder):
                report.added.append(folder.root.name)
            elif _complete_run(store, description):
                report.updated.append(folder.root.name)
            else:
                continue
        except (OSError, ValueError, RunyardException) as error:
            report.not_added.append((folder.root.name, _reason(error)))
            continue
        files = [file for file in description.artifacts if artifacts.content(file.digest).is_file()]
        if files:
            with database.write() as connection:
                record_artifacts(connection, folder.root.name, files)
        has_ended = description.record.life.state.is_terminal
        ingest(database, folder.root.name, folder.journal, final=has_ended)
        ingest(database, system_run_id(folder.root.name), folder.system, final=has_ended)


def _description(folder: RunFolder) -> RunDescription:
    if folder.description.exists():
        return read_description(folder)
    return _from_events(folder)


def _from_events(folder: RunFolder) -> RunDescription:
    """Describe a run that an earlier version started, which wrote no description: its logs and metrics exist."""
    if not folder.order.exists():
        raise ValueError("its folder has no description of it")
    started_at = folder.order.stat().st_mtime
    ends = [event.end for event, _ in read_events(folder) if event is not None and hasattr(event, "end")]
    if not ends:
        raise ValueError("its folder has no description, and the run has not ended")
    ended_at = max(started_at, folder.events.stat().st_mtime)
    end: End = ends[-1]
    experiment = folder.root.name.rsplit("_", 2)[0]
    timeline = {RunState.RUNNING.value: started_at, end.state.value: ended_at}
    record = RunRecord(
        run_id=folder.root.name,
        experiment=experiment,
        life=Life(end.state, end, managed=False),
        created_at=started_at,
        root_id=folder.root.name,
        timeline=timeline,
        started_at=started_at,
        ended_at=ended_at,
    )
    return RunDescription(record, {}, {}, {}, [])


def _add_run(store: RunStore, description: RunDescription, folder: RunFolder) -> bool:
    record = description.record
    if not record.life.state.is_terminal:
        record = _unfinished(record, folder)
    if store.insert(record, description.tags, description.properties) is None:
        return False
    if description.params:
        store.set_params(record.run_id, description.params)
    return True


def _unfinished(record: RunRecord, folder: RunFolder) -> RunRecord:
    """The state from which the next yard continues: it reads the events of a run that was started."""
    if record.life.is_sweep:
        message = "the state of the sweep was lost with the database; its child runs were restored"
        return with_life(record, replace(record.life, state=RunState.FAILED, end=End(EndReason.PROCESS_LOST, message)))
    if record.life.managed and folder.order.exists():
        number = read_order(folder.order).attempt
        lost = Attempt(End(EndReason.NODE_LOST, "the record of this attempt was lost with the database"))
        earlier = (lost,) * min(max(number - 1, 0), _MAX_ATTEMPTS)
        return replace(record, life=replace(record.life, state=RunState.STARTING, earlier_attempts=earlier))
    return record


def _complete_run(store: RunStore, description: RunDescription) -> bool:
    """Set the end of a run that had not ended when the backup was made."""
    if not description.record.life.state.is_terminal:
        return False
    stored = store.load(description.record.run_id)
    store.save(replace(description.record, number=stored.number, version=stored.version))
    return True


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, RunyardException) else str(error)
