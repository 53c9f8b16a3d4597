"""Reads TensorBoard event files: each folder that contains some is a run.

The yard reads the metrics and hyperparameters from the event files, which are uploaded with the run. Only their times
and the sessions of the HParams plugin are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from runyard.errors import UserErrorException
from runyard.event_files.checksums import complete_records
from runyard.event_files.hparams import FAILURE, SESSION_END, SESSION_START
from runyard.event_files.summaries import SummaryValue, read_event
from runyard.exchange.foreign_run import COMPLETED, FAILED, ForeignRun, stable_id
from runyard.wire.event_records import is_event_file
from runyard.wire.exchange import EVENT_FILES_FOLDER, TENSORBOARD


def runs(root: Path) -> Iterator[ForeignRun]:
    """Yield the runs. A folder that `add_hparams` created inside the folder of a run belongs to that run.

    If there are several such folders, each is a session with its own hyperparameters, and becomes a child run.
    """
    paths = {path.parent for path in root.rglob("*") if is_event_file(path.name) and path.is_file()}
    logs = {folder: log for folder in sorted(paths) if (log := _read_log(folder)) is not None}
    sessions: dict[Path, list[Path]] = {}
    for folder, log in logs.items():
        if log.has_session and folder.parent in logs:
            sessions.setdefault(folder.parent, []).append(folder)
    merged_folders = {folders[0] for folders in sessions.values() if len(folders) == 1}
    for folder, log in logs.items():
        if folder in merged_folders:
            continue
        parts = [folder, *(part for part in sessions.get(folder, ()) if part in merged_folders)]
        is_child = log.has_session and folder.parent in logs
        parent_id = _run_id(root, folder.parent, logs[folder.parent]) if is_child else None
        yield _run(root, folder, {part: logs[part] for part in parts}, parent_id)


@dataclass
class _Log:
    """The event files of one folder."""

    files: list[Path]
    first_at: float
    last_at: float
    has_session: bool = False
    has_failed: bool = False


def _run(root: Path, folder: Path, logs: dict[Path, _Log], parent_id: Optional[str]) -> ForeignRun:
    return ForeignRun(
        run_id=_run_id(root, folder, logs[folder]),
        experiment=_experiment(root),
        name=_name(root, folder),
        status=FAILED if any(log.has_failed for log in logs.values()) else COMPLETED,
        created_at=logs[folder].first_at,
        ended_at=max(log.last_at for log in logs.values()),
        source=TENSORBOARD,
        parent_id=parent_id,
        files=[
            (EVENT_FILES_FOLDER + path.relative_to(folder).as_posix(), path)
            for log in logs.values()
            for path in log.files
        ],
    )


def _run_id(root: Path, folder: Path, log: _Log) -> str:
    return stable_id(_experiment(root), _name(root, folder), str(round(log.first_at * 1e6)))


def _experiment(root: Path) -> str:
    return root.resolve().name


def _name(root: Path, folder: Path) -> str:
    return folder.relative_to(root).as_posix() if folder != root else folder.resolve().name


def _read_log(folder: Path) -> Optional[_Log]:
    """Return None if the files contain no values."""
    files = sorted(path for path in folder.iterdir() if is_event_file(path.name) and path.is_file())
    log: Optional[_Log] = None
    for path in files:
        for value in _read_values(path):
            log = log or _Log(files, value.time, value.time)
            log.first_at = min(log.first_at, value.time)
            log.last_at = max(log.last_at, value.time)
            log.has_session |= value.kind == SESSION_START
            log.has_failed |= value.kind == SESSION_END and value.value == FAILURE
    return log


def _read_values(path: Path) -> Iterator[SummaryValue]:
    data = path.read_bytes()
    spans, damaged_at = complete_records(data)
    if damaged_at is not None:
        raise UserErrorException(
            f"{path} is damaged at byte {damaged_at:,}: checksum mismatch", hint="move it away and import the rest"
        )
    for start, end in spans:
        with suppress(ValueError, ArithmeticError, struct.error):  # events of unknown types
            yield from read_event(data[start:end])
