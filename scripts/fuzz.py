"""Fuzzes every route of a real yard with Schemathesis, from the OpenAPI document: `make fuzz`.

No request may be answered with a status of 500 or above, and the yard must neither log an error nor end. MLflow's
routes, which the document does not contain, are added. The yard has a home folder below the temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from runyard import Experiment, Workspace
from runyard.client.yard_process import find_yard, stop_yard
from runyard.server.mlflow.registry import endpoints as registry
from runyard.server.mlflow.routes import ENDPOINTS

_STREAMS = ("/api/live", "/api/runs/{run_id}/live", "/api/runs/{run_id}/follow", "/api/transfers/{transfer_id}/follow")
_TEXTS = (
    *("run_id", "experiment_id", "name", "key", "value", "filter", "page_token", "status", "path", "model_id"),
    *("version", "alias", "stage", "source", "description", "url", "secret", "webhook_id"),
)
_LISTS = (
    *("metrics", "params", "tags", "datasets", "models", "experiment_ids", "run_ids", "order_by"),
    *("stages", "events"),
)
_NUMBERS = ("step", "timestamp", "max_results", "start_time", "end_time")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=1200, help="time for requests (default: 1200)")
    parser.add_argument("--seed", type=int, help="repeat the requests of an earlier call")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="ry-fuzz-"))
    os.environ["RUNYARD_HOME"] = str(home)
    try:
        workspace = Workspace()
        known = _seed(workspace)
        address = workspace.connection.post("/api/studio", {})
        document = _document(workspace.connection.get("/api/openapi.json"), known)
        (home / "openapi.json").write_text(json.dumps(document))
        pid = find_yard(home)
        code = 0
        for command, seconds in _commands(options.seconds):
            code = _schemathesis(command, home, address, seconds, options.seed) or code
        return code or _check(home, pid)
    finally:
        stop_yard(home)
        shutil.rmtree(home, ignore_errors=True)


def _seed(workspace: Workspace) -> dict[str, list[Any]]:
    """Create one of everything that is cheap to create, so that requests reach code behind the search for an id."""
    experiment = Experiment(workspace, "fuzz")
    run = experiment.start_logging(snapshot_directory=None)
    run.log_list("loss", [0.5, 0.25])
    run.tag("team", "vision")
    model = workspace.home / "model.bin"
    model.write_bytes(b"model")
    run.upload_file("outputs/model.bin", str(model))
    run.complete()
    # not `start_logging`, which would complete this run when the process exits, and start a yard for that
    live = {"run_id": "fuzz-live", "experiment": "fuzz", "hold": False}
    workspace.connection.post("/api/runs/begin", live)
    return {"run_id": [run.id, live["run_id"]], "experiment": ["fuzz"], "experiment_name": ["fuzz"]}


def _document(document: dict[str, Any], known: dict[str, list[str]]) -> dict[str, Any]:
    paths = {path: item for path, item in document["paths"].items() if path not in _STREAMS}
    for item in paths.values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in known:
                    parameter["schema"] = {"anyOf": [{"enum": known[parameter["name"]]}, parameter["schema"]]}
    for endpoint in (*ENDPOINTS, *registry.ENDPOINTS, "POST /model-versions/create"):
        method, _, path = endpoint.partition(" ")
        paths.setdefault(f"/api/2.0/mlflow{path}", {})[method.lower()] = _mlflow_operation(method, path, known)
    return {**document, "paths": paths}


def _mlflow_operation(method: str, path: str, known: dict[str, list[str]]) -> dict[str, Any]:
    text = {"type": "string"}
    fields: dict[str, Any] = dict.fromkeys(_TEXTS, text)
    fields.update((name, {"type": "array", "items": {}}) for name in _LISTS)
    fields.update((name, {"type": ["integer", "string"]}) for name in _NUMBERS)
    for name, values in known.items():
        fields[name] = {"anyOf": [{"enum": values}, text]}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in ("model_id", "tag_key", "webhook_id")
        if f"{{{name}}}" in path
    ]
    operation: dict[str, Any] = {"parameters": parameters, "responses": {"200": {"description": "a response"}}}
    if method == "GET":
        parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()]
    else:
        operation["requestBody"] = {
            "content": {"application/json": {"schema": {"type": "object", "properties": fields}}}
        }
    return operation


def _commands(seconds: int) -> list[tuple[list[str], int]]:
    """Requests to single operations, then sequences of operations that use the responses of earlier ones."""
    if seconds < 120:
        return [(["run", "--phases", "fuzzing"], seconds)]
    return [(["run", "--phases", "coverage,fuzzing"], seconds // 2), (["fuzz"], seconds - seconds // 2)]


def _schemathesis(command: list[str], home: Path, address: dict[str, Any], seconds: int, seed: int | None) -> int:
    words = [sys.executable, "-m", "schemathesis.cli", *command, str(home / "openapi.json")]
    words += ["--url", address["url"], "--header", f"Authorization: Bearer {address['token']}"]
    words += ["--checks", "not_a_server_error", "--max-time", str(seconds), "--request-timeout", "60"]
    words += ["--generation-database", "none", "--no-color", "--suppress-health-check", "all", "--warnings", "off"]
    words += ["--continue-on-failure"] + (["--seed", str(seed)] if seed is not None else [])
    return subprocess.run(words, cwd=home, env={**os.environ, "COLUMNS": "120"}).returncode


def _check(home: Path, pid: int | None) -> int:
    if find_yard(home) != pid:
        print("the yard has ended")
        return 1
    log = (home / "yard.log").read_text(errors="replace")
    lines = [line for line in log.splitlines() if " ERROR " in line or "Traceback" in line]
    print("\n".join(lines[:20]))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
