"""Imports W&B's offline runs continuously: new runs of a folder, and new points of runs that are still running.

The yard knows how many points of each metric it has, so that every point is stored once, also if the watcher was
killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runyard import clock
from runyard.client.connection import Connection
from runyard.errors import RunyardException, UserErrorException, YardUnavailable
from runyard.exchange.foreign_run import NOT_ENDED, RUNNING, ForeignRun
from runyard.exchange.import_runs import Importer, PointsMissing
from runyard.exchange.wandb_offline import OfflineRun, RunKey, find_logs, read_key

INTERVAL_S = 1.0
_FILES_INTERVAL_S = 10.0  # files of a running run: its log changes all the time
# W&B writes its file every 15 s, and system metrics are always new
_SILENCE_S = 300.0
_RESCAN_FACTOR = 20  # a large folder is searched again after this multiple of the last search's duration


@dataclass
class WatchCounts:
    """Totals since the start of the watcher."""

    runs: int = 0
    running: int = 0
    points: int = 0
    files: int = 0


@dataclass
class _WatchedRun:
    offline: OfflineRun
    paths: list[Path] = field(default_factory=list)
    sizes: dict[Path, int] = field(default_factory=dict)  # as of the last read
    changed_at: float = 0.0
    files_sent_at: float = 0.0
    status: str = ""  # as last sent
    has_unsent: bool = False
    is_refused: bool = False


class Watcher:
    """Watches a folder. ``report`` receives one line per new, ended or unreadable run."""

    def __init__(self, connection: Connection, root: Path, report: Callable[[str], None]) -> None:
        if not root.is_dir():
            reason = "is not a folder" if root.exists() else "does not exist"
            raise UserErrorException(f"{str(root)!r} {reason}", hint="pass the folder `wandb` of your project")
        self._root = root
        self._report = report
        self._importer = Importer(connection)
        self._runs: dict[RunKey, _WatchedRun] = {}
        self._keys: dict[Path, RunKey] = {}
        self._unreadable: set[Path] = set()
        self._next_scan_at = 0.0
        self._last_error = ""

    @property
    def counts(self) -> WatchCounts:
        counts = self._importer.counts
        running = sum(run.status == RUNNING for run in self._runs.values())
        sent = sum(bool(run.status) for run in self._runs.values())
        return WatchCounts(sent, running, counts.points, counts.files)

    def import_new(self) -> None:
        """Import everything that was added since the last call."""
        self._find_runs()
        for run in self._runs.values():
            if run.is_refused:
                continue
            try:
                self._check(run)
            except UserErrorException as error:
                run.is_refused = True
                self._report(f"skipped {run.paths[0]}: {error.message}")
            except RunyardException as error:  # such as a full disk
                if error.message != self._last_error:
                    self._report(f"trying again: {error.message}")
                self._last_error = error.message
                if isinstance(error, YardUnavailable):
                    return
            else:
                self._last_error = ""

    def _find_runs(self) -> None:
        started_at = time.monotonic()
        if started_at < self._next_scan_at:
            return
        for path in find_logs(self._root):
            if path in self._keys or path in self._unreadable:
                continue
            try:
                key = read_key(path)
            except OSError:  # deleted since
                continue
            except UserErrorException as error:
                self._unreadable.add(path)
                self._report(f"skipped {path}: {error.message}")
                continue
            if key is None:  # W&B has not written anything yet
                continue
            self._keys[path] = key
            run = self._runs.setdefault(key, _WatchedRun(OfflineRun([])))
            run.paths.append(path)
            run.offline.add_logs([path])
        self._next_scan_at = started_at + _RESCAN_FACTOR * (time.monotonic() - started_at)

    def _check(self, run: _WatchedRun) -> None:
        sizes = {path: size for path in run.paths if (size := _size(path)) is not None}
        if sizes == run.sizes and not run.has_unsent and run.status not in ("", RUNNING):
            return
        now = time.monotonic()
        if sizes != run.sizes:
            with suppress(FileNotFoundError):  # a folder that was deleted has been imported so far
                run.has_unsent |= run.offline.read_new()
            if not run.sizes:  # the age of a file that exists before the watcher
                run.changed_at = now - _age_s(run.paths)
            else:
                run.changed_at = now
            run.sizes = sizes
        status = RUNNING if now - run.changed_at < _SILENCE_S else NOT_ENDED
        description = run.offline.to_foreign_run(status, with_files=False)
        has_ended = description.status != RUNNING
        files_due = has_ended != (run.status not in ("", RUNNING)) or (
            not has_ended and now - run.files_sent_at >= _FILES_INTERVAL_S
        )
        if run.has_unsent or files_due or description.status != run.status:
            self._send(run, run.offline.to_foreign_run(status, with_files=files_due or has_ended))
            run.files_sent_at = now if files_due else run.files_sent_at

    def _send(self, run: _WatchedRun, description: ForeignRun) -> None:
        try:
            self._importer.send(description)
        except PointsMissing:  # the run was deleted in the yard: send it again from its beginning
            run.offline = OfflineRun(run.paths)
            run.offline.read_new()
            self._importer.send(run.offline.to_foreign_run(description.status))
        run.offline.records.forget_points()
        run.has_unsent = False
        if description.status != run.status:
            state = "running" if description.status == RUNNING else description.status.lower()
            if description.status == NOT_ENDED:
                state = f"no new data for {_SILENCE_S / 60:.0f} minutes, shown as failed until it continues"
            self._report(f"{description.name} ({description.run_id}): {state}")
            for text in description.missing_files:
                self._report(f"warning: {description.name} lacks {text}")
        run.status = description.status


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _age_s(paths: list[Path]) -> float:
    times = []
    for path in paths:
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return max(0.0, clock.now() - max(times, default=0.0))
