"""Reads the offline runs of W&B: folders with a log `run-….wandb` and the files of the run."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.exchange.foreign_run import COMPLETED, FAILED, NOT_ENDED, ForeignRun, list_files, stable_id
from runyard.exchange.wandb_log import LogReader
from runyard.exchange.wandb_records import ArtifactFile, RunRecords
from runyard.posix.sha256 import CHUNK_BYTES

SOURCE = "wandb"
RunKey = tuple[str, str]
_NAME = re.compile(r"run-.+\.wandb")
_NOT_SEARCHED = ("files", "logs", "tmp")  # folders of a run, which may contain anything


def runs(root: Path) -> Iterator[ForeignRun]:
    paths = [root] if root.is_file() else find_logs(root)
    if not paths:
        raise UserErrorException(f"no run-….wandb at or below {root}", hint="pass the folder `wandb` of your project")
    by_run: dict[RunKey, list[Path]] = {}
    for path in paths:
        key = read_key(path)
        if key is not None:
            by_run.setdefault(key, []).append(path)
    for run_paths in by_run.values():
        run = OfflineRun(run_paths)
        run.read_new()
        yield run.to_foreign_run()


def find_logs(root: Path) -> list[Path]:
    """Return the logs at or below a folder, oldest first: the names of the runs' folders contain the time."""
    paths = []
    for folder, subfolders, names in os.walk(root):
        logs = [Path(folder) / name for name in names if _NAME.fullmatch(name)]
        paths += logs
        if logs:
            subfolders[:] = [name for name in subfolders if name not in _NOT_SEARCHED]
    return sorted(paths, key=lambda path: (path.parent.name, path))


def read_key(path: Path) -> Optional[RunKey]:
    """Return project and id of the run, which several logs have if it was resumed; None if they are not there yet.

    Raises:
        UserErrorException: The log is damaged.
    """
    records = RunRecords()
    for record in LogReader(path).read_new():
        _add(records, record, path)
        if records.run_id:
            return records.project, records.run_id
    return None


class OfflineRun:
    """A run of W&B that may still grow."""

    def __init__(self, paths: list[Path]) -> None:
        self.records = RunRecords()
        self._logs: list[LogReader] = []
        self._verified: dict[ArtifactFile, tuple[int, int]] = {}  # size and modification time of intact copies
        self.add_logs(paths)

    def add_logs(self, paths: list[Path]) -> None:
        """Add the logs of processes that have resumed the run. A copy of a folder is not another process."""
        for path in paths:
            if path.parent.name not in {log.path.parent.name for log in self._logs}:
                self._logs.append(LogReader(path))

    def read_new(self) -> bool:
        """Read the records that were added since the last call; False if there are none.

        Raises:
            UserErrorException: A log is damaged.
        """
        has_new = False
        for log in self._logs:
            for record in log.read_new():
                has_new = True
                _add(self.records, record, log.path)
        return has_new

    def to_foreign_run(self, status: Optional[str] = None, *, with_files: bool = True) -> ForeignRun:
        """Describe the run. ``status`` is that of a run that has not ended."""
        records = self.records
        tags = {"wandb.id": records.run_id}
        for key in ("group", "job_type", "notes", "host"):
            if value := getattr(records, key):
                tags[f"wandb.{key}"] = value
        tags.update(dict.fromkeys(records.labels, ""))
        files, missing_files = self._files() if with_files else ([], [])
        return ForeignRun(
            run_id=stable_id(SOURCE, records.project or "uncategorized", records.run_id),
            experiment=records.project or "uncategorized",
            name=records.name or records.run_id,
            status=_status(records.exit_code) or status or NOT_ENDED,
            created_at=records.started_at,
            ended_at=max(records.last_at, records.started_at) if records.exit_code is not None else None,
            source=SOURCE,
            series=lambda: iter(list(records.series.values())),
            user=records.user,
            message=f"exit code {records.exit_code}" if records.exit_code else "",
            tags=tags,
            params=dict(_params("", records.config)),
            files=files,
            missing_files=missing_files,
        )

    def _files(self) -> tuple[list[tuple[str, Path]], list[str]]:
        """Return the files of the run, and descriptions of those that no longer exist.

        `wandb.save` stores links to the original files. Links that the log does not mention are not followed.
        """
        files: dict[str, Path] = {}
        for log in self._logs:
            files.update(list_files(log.path.parent / "files"))
        missing_files = []
        for name in self.records.saved_files:
            if name in files or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                continue
            paths = [log.path.parent / "files" / name for log in reversed(self._logs)]
            path = next((path for path in paths if path.exists()), None)
            if path is None:
                missing_files.append(_missing_text(name, paths[0]))
            elif path.is_dir():
                files.update(list_files(path, f"{name}/"))
            elif path.is_file():
                files[name] = path
        for entry in self.records.artifact_files:
            if self._is_intact(entry):
                files[entry.name] = Path(entry.path)
            else:
                missing_files.append(f"{entry.name} (was at {entry.path})")
        return sorted(files.items()), missing_files

    def _is_intact(self, entry: ArtifactFile) -> bool:
        """Compare an artifact with its checksum: the log names an arbitrary path, whose file may be another one."""
        try:
            stat = Path(entry.path).stat()
            state = (stat.st_size, stat.st_mtime_ns)
            if self._verified.get(entry) != state:
                hashing = hashlib.md5(usedforsecurity=False)
                with open(entry.path, "rb") as file:
                    while chunk := file.read(CHUNK_BYTES):
                        hashing.update(chunk)
                if base64.b64encode(hashing.digest()).decode() != entry.md5:
                    return False
                self._verified[entry] = state
        except (OSError, ValueError):
            return False
        return True


def _add(records: RunRecords, record: bytes, path: Path) -> None:
    try:
        records.add(record)
    except (ValueError, ArithmeticError, struct.error) as error:
        raise UserErrorException(
            f"{path} contains a record that is not W&B's: {error}", hint="move it away and import the rest"
        ) from error


def _status(exit_code: Optional[int]) -> Optional[str]:
    return None if exit_code is None else COMPLETED if exit_code == 0 else FAILED


def _missing_text(name: str, path: Path) -> str:
    return f"{name} (was at {path.readlink()})" if path.is_symlink() else name


def _params(prefix: str, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield parameters; the names of nested ones are joined with dots, as in W&B."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _params(f"{prefix}{key}.", value)
        else:
            yield prefix + key, value if isinstance(value, str) else json.dumps(value)
