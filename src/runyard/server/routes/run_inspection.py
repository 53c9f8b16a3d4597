"""One run, told from what was kept of it: code, environment, processes, time; also beside another run."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter, Response

from runyard.environments import lock_diff as environments
from runyard.errors import SnapshotException
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_report import processes, timeline
from runyard.orchestrator.submit import rerun
from runyard.server.file_responses import bytes_response
from runyard.server.responses import json_response, run_view
from runyard.snapshots import compare as snapshots
from runyard.snapshots.manifest import Entry
from runyard.store.runs import RunRecord
from runyard.tracking.logs import read_log
from runyard.wire.run_inspection import CodeChange, CodeFile, EnvironmentView, PackageChange, ProcessView
from runyard.wire.runs import RunView

_TAIL = 1 << 18


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["one run"])
    rooms = conductor.rooms

    @router.get("/runs/{run_id}/code", response_model=list[CodeFile])
    def tree(run_id: str) -> Response:
        """The files of the code as it was; none for a run without a snapshot."""
        snapshot_id = rooms.runs.load(run_id).snapshot_id
        entries = rooms.snapshots.manifest(snapshot_id).entries if snapshot_id else ()
        return json_response([CodeFile(entry.path, entry.size, _mode(entry)) for entry in entries])

    @router.get("/runs/{run_id}/code/{path:any}")
    def source(run_id: str, path: str, inline: bool = False) -> Response:
        snapshot_id = rooms.runs.load(run_id).snapshot_id
        if not snapshot_id:
            raise SnapshotException(f"run {run_id} has no snapshot of its code")
        return bytes_response(rooms.snapshots.read(snapshot_id, path), PurePosixPath(path).name, inline=inline)

    @router.get("/diff/code", response_model=list[CodeChange])
    def code_changes(a: str, b: str) -> Response:
        """What changed in the code from run `a` to run `b`."""
        first, second = rooms.runs.load(a).snapshot_id, rooms.runs.load(b).snapshot_id
        changes = snapshots.compare(rooms.snapshots, first, second) if first != second else []
        return json_response([CodeChange(*change) for change in changes])

    @router.get("/runs/{run_id}/environment", response_model=EnvironmentView)
    def environment(run_id: str) -> Response:
        """The key of its environment, the resolved packages, and the end of the log of its making."""
        record = rooms.runs.load(run_id)
        log, _ = read_log(rooms.folder(run_id).environment_log, -_TAIL, _TAIL)
        return json_response(EnvironmentView(record.environment_key, lock_of(record), log.decode("utf-8", "replace")))

    @router.get("/diff/environment", response_model=list[PackageChange])
    def environment_changes(a: str, b: str) -> Response:
        """The packages that differ between the environments of two runs."""
        found = environments.compare(lock_of(rooms.runs.load(a)), lock_of(rooms.runs.load(b)))
        return json_response([PackageChange(*change) for change in found])

    @router.get("/runs/{run_id}/plan", response_model=list[ProcessView])
    def plan(run_id: str) -> Response:
        """The exact command and variables of every process, as they were ordered; none before the start."""
        rooms.runs.load(run_id)
        return json_response(processes(rooms, run_id))

    @router.get("/runs/{run_id}/timeline")
    def phases(run_id: str) -> Response:
        """Where the time went: `phase`, `from`, `to` (null: it goes on)."""
        found: list[dict[str, Any]] = [
            {"phase": phase.phase, "from": phase.begin, "to": phase.end} for phase in timeline(rooms.runs.load(run_id))
        ]
        return json_response(found)

    @router.post("/runs/{run_id}/rerun", response_model=RunView)
    def run_again(run_id: str) -> Response:
        """Submit the same code with the same arguments as a new run."""
        return json_response(run_view(conductor, rerun(conductor, run_id)))

    def lock_of(record: RunRecord) -> str:
        path = rooms.folder(record.run_id).lock_file
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    return router


def _mode(entry: Entry) -> str:
    if entry.kind != "file":
        return entry.kind
    return "755" if entry.executable else "644"
