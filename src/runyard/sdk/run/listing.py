"""Runs found by what is known about them, each opened as what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

from runyard.sdk.core.labels import as_labels
from runyard.sdk.run.run import Run

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.workspace import Workspace


def list_runs(workspace: Workspace, *, tags: Any = None, properties: Any = None, **query: Any) -> Iterator[Run]:
    from runyard.sdk.core.experiment import Experiment

    before: Optional[int] = None
    while True:
        page = workspace.connection.get(
            "/api/runs",
            tags=_wanted(tags, "tags"),
            properties=_wanted(properties, "properties"),
            before=before,
            limit=200,
            **query,
        )
        for view in page["runs"]:
            yield opened(Experiment(workspace, view["experiment"]), view)
        before = page["next"]
        if before is None:
            return


def opened(experiment: Experiment, view: dict[str, Any]) -> Run:
    """As what it is: a sweep can do more than a run."""
    factory = Run._factories.get(view["type"])
    if factory is not None:
        made: Run = factory(experiment, view)
        return made
    if view["type"] == "hyperdrive":
        from runyard.sdk.hyperdrive.run import HyperDriveRun

        return HyperDriveRun(experiment, view["run_id"], _view=view)
    if view["type"] == "azureml.scriptrun":
        from runyard.sdk.run.script_run import ScriptRun

        return ScriptRun(experiment, view["run_id"], _view=view)
    return Run(experiment, view["run_id"], _view=view)


def _wanted(labels: Any, what: str) -> str | None:
    if labels is None:
        return None
    return json.dumps({labels: None} if isinstance(labels, str) else as_labels(labels, what))
