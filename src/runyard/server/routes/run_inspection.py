"""Details of a run from its stored files: code, environment, processes, timeline; and differences between two runs."""

from __future__ import annotations

from pathlib import PurePosixPath

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

_MAX_LOCK_BYTES = 1 << 24
_LOG_TAIL_BYTES = 1 << 18


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["run inspection"])
    components = conductor.components

    @router.get("/runs/{run_id}/code", response_model=list[CodeFile])
    def tree(run_id: str) -> Response:
        """List the files of the run's snapshot; empty for a run without one."""
        snapshot_id = components.runs.load(run_id).snapshot_id
        entries = components.snapshots.manifest(snapshot_id).entries if snapshot_id else ()
        return json_response([CodeFile(entry.path, entry.size, _mode(entry)) for entry in entries])

    @router.get("/runs/{run_id}/code/{path:any}")
    def source(run_id: str, path: str, inline: bool = False) -> Response:
        snapshot_id = components.runs.load(run_id).snapshot_id
        if not snapshot_id:
            raise SnapshotException(f"run {run_id} has no snapshot")
        return bytes_response(components.snapshots.read(snapshot_id, path), PurePosixPath(path).name, inline=inline)

    @router.get("/diff/code", response_model=list[CodeChange])
    def code_changes(a: str, b: str) -> Response:
        """List the changes of the code from run `a` to run `b`."""
        first, second = components.runs.load(a).snapshot_id, components.runs.load(b).snapshot_id
        changes = snapshots.compare(components.snapshots, first, second) if first != second else []
        return json_response([CodeChange(*change) for change in changes])

    @router.get("/runs/{run_id}/environment", response_model=EnvironmentView)
    def environment(run_id: str) -> Response:
        """Return the key of the run's environment, its resolved packages, and the end of the build log."""
        record = components.runs.load(run_id)
        log, _ = read_log(components.folder(run_id).environment_log, -_LOG_TAIL_BYTES, _LOG_TAIL_BYTES)
        return json_response(EnvironmentView(record.environment_key, read_lock(record), log.decode("utf-8", "replace")))

    @router.get("/diff/environment", response_model=list[PackageChange])
    def environment_changes(a: str, b: str) -> Response:
        """List the packages that differ between the environments of two runs."""
        changes = environments.compare(read_lock(components.runs.load(a)), read_lock(components.runs.load(b)))
        return json_response([PackageChange(*change) for change in changes])

    @router.get("/runs/{run_id}/plan", response_model=list[ProcessView])
    def plan(run_id: str) -> Response:
        """List the exact command and variables of every process; empty before the run has started."""
        components.runs.load(run_id)
        return json_response(processes(components, run_id))

    @router.get("/runs/{run_id}/timeline")
    def list_phases(run_id: str) -> Response:
        """List the phases of the run: `phase`, `from`, `to` (null for the current one)."""
        phases = timeline(components.runs.load(run_id))
        return json_response([{"phase": phase.phase, "from": phase.begin, "to": phase.end} for phase in phases])

    @router.post("/runs/{run_id}/rerun", response_model=RunView)
    def run_again(run_id: str) -> Response:
        """Submit the same code with the same arguments as a new run."""
        return json_response(run_view(conductor, rerun(conductor, run_id)))

    def read_lock(record: RunRecord) -> str:
        return read_log(components.folder(record.run_id).lock_file, 0, _MAX_LOCK_BYTES)[0].decode("utf-8", "replace")

    return router


def _mode(entry: Entry) -> str:
    if entry.kind != "file":
        return entry.kind
    return "755" if entry.executable else "644"
