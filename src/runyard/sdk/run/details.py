"""The details of a run, in the shape that scripts for the SDK v1 read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard.clock import utc_text
from runyard.sdk.run import inputs

_LOGS = "azureml-logs/"


def details(view: dict[str, Any], files: list[str], workspace: Any) -> dict[str, Any]:
    """Absent values are left out, as v1 did."""
    found = {
        "runId": view["run_id"],
        "target": view["target"],
        "status": view["status"],
        "startTimeUtc": utc_text(view["started_at"]) if view["started_at"] else None,
        "endTimeUtc": utc_text(view["ended_at"]) if view["ended_at"] else None,
        "error": _error(view),
        "attempts": [{**one, "ended_at": utc_text(one["ended_at"])} for one in view["attempts"]] or None,
        "warnings": [{"source": "runyard", "message": text} for text in view["warnings"]] or None,
        "runDefinition": _definition(view),
        "submittedBy": view["submitted_by"],
    }
    return {
        **{key: value for key, value in found.items() if value is not None},
        "services": {},
        "properties": view["properties"],
        "inputDatasets": inputs.details(view, workspace),
        "outputDatasets": [],
        "logFiles": {name: (Path(view["folder"]) / name).as_uri() for name in files if name.startswith(_LOGS)},
    }


def _error(view: dict[str, Any]) -> dict[str, Any] | None:
    """The truth first: the script's own message, its traceback, its last lines."""
    end = view["end"]
    if not end or view["status"] == "Completed":
        return None
    user = end["reason"] in ("script failed", "out of memory", "marked as failed")
    return {
        "error": {
            "code": "UserError" if user else "ServiceError",
            "message": end["message"],
            "reason": end["reason"],
            "details": {key: end[key] for key in ("exit_code", "signal", "rank", "node", "processes_left")},
            "traceback": end["traceback"],
            "lastLines": end["last_lines"],
        },
        "message": end["message"],
        "time": utc_text(view["ended_at"]) if view["ended_at"] else None,
    }


def _definition(view: dict[str, Any]) -> dict[str, Any] | None:
    spec = view["spec"]
    if spec is None:
        return None
    resources, environment = spec["resources"], spec["environment"]
    return {
        "script": spec["script"],
        "arguments": spec["arguments"],
        "framework": spec["framework"],
        "communicator": spec["communicator"],
        "target": spec["target"],
        "nodeCount": resources["nodes"],
        "dataReferences": _references(spec.get("data") or ()),
        "data": inputs.definition(view),
        "maxRunDurationSeconds": spec["max_run_duration_seconds"],
        "environment": environment,
        "environmentVariables": spec["environment_variables"],
        "history": {"outputCollection": True, "directoriesToWatch": spec["directories_to_watch"]},
        "tensorflow": {"workerCount": 1, "parameterServerCount": 1},
        "mpi": {"processCountPerNode": resources["processes_per_node"]},
        "pyTorch": {"communicationBackend": spec["communicator"], "processCount": None},
    }


def _references(uses: Any) -> dict[str, dict[str, Any]]:
    return {
        use["name"]: {
            "dataStoreName": use["datastore"],
            "pathOnDataStore": use["path"] or None,
            "mode": use["mode"],
            "pathOnCompute": use["path_on_compute"],
            "overwrite": use["overwrite"],
        }
        for use in uses
        if not use.get("dataset")
    }
