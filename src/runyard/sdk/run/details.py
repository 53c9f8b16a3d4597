"""Run details in the form that scripts for the SDK v1 read, and the public types of how a run ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from runyard.clock import utc_text
from runyard.sdk.run import inputs
from runyard.wire.runs import AttemptView, EndView

_LOGS = "azureml-logs/"
_RESTART = "max_attempts=2 on the estimator starts such a run again"
_HINTS = {
    "out of memory": "reduce the batch size, or request more memory with resources=Resources(...)",
    "timed out": "raise max_run_duration_seconds",
    "stalled": "logs/stalled/ contains the stacks of all processes",
    "environment failed": "azureml-logs/20_environment_log.txt contains the output of the installer",
    **dict.fromkeys(("node lost", "agent lost", "preempted"), _RESTART),
}


@dataclass(frozen=True)
class RunEnd(EndView):
    """The reason and circumstances of a run's end.

    Attributes:
        reason: One of the words of ``runyard.lifecycle.state.EndReason``: ``"succeeded"``, ``"script failed"``, ...
        message: One line, such as the last line of the script's traceback.
        exit_code: Exit code of the script, or of the rank that caused the failure.
        signal: Name of the signal that ended the process, such as ``"SIGKILL"``.
        rank: The rank that failed first.
        node: The node it ran on.
        traceback: The script's traceback, as it was printed.
        last_lines: The last lines of the log.
        processes_left: Processes that could not be stopped; 0 in all normal cases.
    """

    @property
    def hint(self) -> str:
        """The next step for this reason; empty if none applies in general."""
        return _HINTS.get(self.reason, "")


@dataclass(frozen=True)
class RunAttempt(AttemptView):
    """An earlier attempt of a run that was started again.

    Attributes:
        number: 1 for the first attempt.
        reason: The reason of its end, as in :class:`RunEnd`.
        message: One line that describes the end.
        node: The node that caused the end, if there is one.
        ended_at: Seconds since 1970.
    """


def end_of(view: dict[str, Any]) -> Optional[RunEnd]:
    return RunEnd(**view["end"]) if view["end"] else None


def attempts_of(view: dict[str, Any]) -> list[RunAttempt]:
    return [RunAttempt(**attempt) for attempt in view["attempts"]]


def details_of(view: dict[str, Any], files: list[str], workspace: Any) -> dict[str, Any]:
    """Return the dict of ``run.get_details()``. Absent values are left out, as in the SDK v1."""
    optional = {
        "runId": view["run_id"],
        "target": view["target"],
        "status": view["status"],
        "startTimeUtc": utc_text(view["started_at"]) if view["started_at"] else None,
        "endTimeUtc": utc_text(view["ended_at"]) if view["ended_at"] else None,
        "error": _error(view),
        "attempts": [{**a, "ended_at": utc_text(a["ended_at"])} for a in view["attempts"]] or None,
        "warnings": [{"source": "runyard", "message": text} for text in view["warnings"]] or None,
        "runDefinition": _definition(view),
        "submittedBy": view["submitted_by"],
    }
    return {
        **{key: value for key, value in optional.items() if value is not None},
        "services": {},
        "properties": view["properties"],
        "inputDatasets": inputs.details(view, workspace),
        "outputDatasets": [],
        "logFiles": {name: (Path(view["folder"]) / name).as_uri() for name in files if name.startswith(_LOGS)},
    }


def _error(view: dict[str, Any]) -> dict[str, Any] | None:
    end = view["end"]
    if not end or view["status"] == "Completed":
        return None
    is_user_error = end["reason"] in ("script failed", "out of memory", "marked as failed")
    return {
        "error": {
            "code": "UserError" if is_user_error else "ServiceError",
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
        "secrets": spec.get("secrets") or {},
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
