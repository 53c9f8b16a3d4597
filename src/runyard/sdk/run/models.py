"""A model out of a run's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.sdk.azureml.no_effect import told
from runyard.sdk.model import registration as registering
from runyard.sdk.model.model import Model

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run


def register(
    run: Run,
    model_name: str,
    model_path: str | None,
    about: tuple[Any, ...],
    samples: tuple[Any, ...],
    others: dict[str, Any],
) -> Model:
    for name, value in others.items():
        told("Run.register_model", name, value, "this version has no such parameter")
    path = os.path.normpath(model_path or model_name)
    _bring_files(run, path)
    request = registering.described("Run.register_model", model_name, *about, *samples)
    registering.say(f"Registering model {model_name}")
    body = {**request, "run_id": run.id, "run_path": path}
    return Model(run.experiment.workspace, _view=run._connection.post("/api/models", body))


def _bring_files(run: Run, path: str) -> None:
    """Files that the yard cannot see yet: those of an interactive run, and of a script on another machine."""
    if run._interactive is not None:
        run._interactive.upload_outputs()
    elif run._inside and "RUNYARD_YARD_ELSEWHERE" in os.environ and Path(path).exists():
        known = run.get_file_names()
        if not any(name == path or name.startswith(path + "/") for name in known):
            if Path(path).is_dir():
                run.upload_folder(path, path)
            else:
                run.upload_file(path, path)
