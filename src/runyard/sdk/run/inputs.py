"""The datasets that a run was given: as its script sees them, and as they are told afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from runyard.errors import UserErrorException
from runyard.spec.data import VARIABLE

if TYPE_CHECKING:
    from runyard.sdk.data.base import AbstractDataset

INPUTS = "RUNYARD_INPUT_DATASETS"  # JSON: name -> what is needed to make the dataset of its files


class InputDatasets(dict[str, Any]):
    """By the name of the input: the path of the data, or the dataset itself if it was passed without a mode."""

    def __missing__(self, name: str) -> Any:
        named = f"its inputs: {', '.join(self)}" if self else "it was given none: pass dataset.as_named_input(…)"
        raise UserErrorException(f"this run has no input dataset {name!r}", hint=named)


def of_this_script() -> InputDatasets:
    given = json.loads(os.environ.get(INPUTS) or "{}")
    return InputDatasets((name, _given(name, about)) for name, about in given.items())


def of_run(view: dict[str, Any], workspace: Any) -> InputDatasets:
    """Seen from outside of the script there is no path: each is the dataset itself."""
    return InputDatasets((use["name"], _dataset(use, workspace)) for use in _uses(view))


def details(view: dict[str, Any], workspace: Any) -> list[dict[str, Any]]:
    """As `get_details()['inputDatasets']`."""
    return [
        {
            "dataset": _dataset(use, workspace),
            "digest": use["dataset"]["digest"],
            "consumptionDetails": {
                "type": "RunInput",
                "inputName": use["name"],
                "mechanism": mechanism(use),
                "pathOnCompute": use["path_on_compute"],
            },
        }
        for use in _uses(view)
    ]


def definition(view: dict[str, Any]) -> dict[str, Any]:
    """As `get_details()['runDefinition']['data']`."""
    return {
        use["name"]: {
            "dataLocation": {"dataset": {key: use["dataset"][key] for key in ("id", "name", "version", "digest")}},
            "mechanism": mechanism(use),
            "environmentVariableName": use["name"],
            "pathOnCompute": use["path_on_compute"],
            "overwrite": use["overwrite"],
        }
        for use in _uses(view)
    }


def mechanism(use: dict[str, Any]) -> str:
    return "Direct" if use["dataset"].get("direct") else str(use["mode"]).capitalize()


def _given(name: str, about: dict[str, Any]) -> Union[str, AbstractDataset]:
    path = os.environ.get(f"{VARIABLE}{name}", "")
    if not about["direct"]:
        return path
    from runyard.sdk.data.base import of_view

    made = of_view(about["dataset"], None)
    made._place, made._done = Path(path), len(made._definition.steps) if made._definition.kind == "file" else 0
    return made


def _dataset(use: dict[str, Any], workspace: Any) -> AbstractDataset:
    from runyard.sdk.data.base import AbstractDataset

    return AbstractDataset.get_by_id(workspace, use["dataset"]["id"])


def _uses(view: dict[str, Any]) -> list[dict[str, Any]]:
    return [use for use in (view["spec"] or {}).get("data", ()) if use.get("dataset")]
