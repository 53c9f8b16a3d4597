"""Reads a home folder through the public SDK and the command line, as plain values.

`make_home.py` writes these facts with the version that makes the home, and `test_old_home.py` reads them again with the
current version. Public names only, so that both versions can run this file.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from runyard import Dataset, Experiment, Model, Run, Workspace

Facts = dict[str, Any]


def run_facts(run: Run) -> Facts:
    details = run.get_details()
    error = details.get("error", {}).get("error", {})
    return {
        "experiment": run.experiment.name,
        "number": run.number,
        "name": run.name,
        "type": run.type,
        "status": run.get_status(),
        "target": details["target"],
        "start": details["startTimeUtc"],
        "end": details["endTimeUtc"],
        "arguments": details["runDefinition"]["arguments"] if "runDefinition" in details else None,
        "error": error or None,
        "tags": run.get_tags(),
        "properties": run.get_properties(),
        "metrics": without_nan(run.get_metrics()),
        "children": sorted(child.id for child in run.get_children()),
        "parent": run.parent.id if run.parent else None,
    }


def file_digests(run: Run) -> dict[str, str]:
    """The SHA-256 of each file of a run, logs included, as a client downloads it."""
    with tempfile.TemporaryDirectory(prefix="ry-") as folder:
        run.download_files(output_directory=folder)
        return {name: _sha256(Path(folder, name)) for name in run.get_file_names()}


def code_digests(run: Run) -> dict[str, str]:
    with (
        tempfile.TemporaryDirectory(prefix="ry-") as folder,
        zipfile.ZipFile(run.restore_snapshot(path=folder)) as archive,
    ):
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def export_runs(folder: Path) -> dict[str, Facts]:
    """Returns each run with all of its points, by id, as `runyard export` writes them."""
    command = [sys.executable, "-m", "runyard", "export", "--all", "--format", "json", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads((folder / "runs.json").read_text(encoding="utf-8"))["runs"]
    for row in rows:
        row["metrics"].pop("optimizer", None)  # a text, not a number
        del row["last_metrics"]  # of the run table, which shows 15 digits after a restart; "metrics" has all of them
    return {row["run_id"]: without_nan(row) for row in rows}


def all_runs(workspace: Workspace) -> dict[str, Run]:
    experiments: list[Experiment] = list(workspace.experiments.values())
    return {run.id: run for experiment in experiments for run in experiment.get_runs(include_children=True)}


def model_facts(model: Model) -> Facts:
    with tempfile.TemporaryDirectory(prefix="ry-") as folder:
        model.download(folder)
        files = {str(path.relative_to(folder)): _sha256(path) for path in Path(folder).rglob("*") if path.is_file()}
    return {
        "id": model.id,
        "stage": model.stage,
        "tags": model.tags,
        "properties": model.properties,
        "description": model.description,
        "metrics": model.metrics,
        "run": model.run_id,
        "files": files,
        "history": [[entry["what"], entry["after"], entry["note"]] for entry in model.history()],
    }


def dataset_facts(workspace: Workspace, name: str) -> Facts:
    dataset: Any = Dataset.get_by_name(workspace, name)
    facts = {
        "id": dataset.id,
        "version": dataset.version,
        "description": dataset.description,
        "tags": dataset.tags,
        "digest": dataset.digest,
    }
    if hasattr(dataset, "to_path"):
        with tempfile.TemporaryDirectory(prefix="ry-") as folder:
            dataset.download(folder)
            facts["files"] = {name: _sha256(Path(folder, name.lstrip("/"))) for name in dataset.to_path()}
    return facts


def without_nan(value: Any) -> Any:
    """Replaces NaN and infinities by their names: NaN does not equal itself."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_nan(entry) for entry in value]
    return value


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
