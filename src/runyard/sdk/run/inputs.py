"""Input datasets of a run: inside of its script, and in its details."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from runyard.errors import UserErrorException
from runyard.spec.data import REFERENCE_VARIABLE_PREFIX

if TYPE_CHECKING:
    from runyard.sdk.data.base import AbstractDataset

INPUTS = "RUNYARD_INPUT_DATASETS"  # JSON: input name -> {"direct": bool, "dataset": definition}


class InputDatasets(dict[str, Any]):
    """Maps the name of an input to the path of its data, or to the dataset if it was passed without a mode."""

    def __missing__(self, name: str) -> Any:
        hint = f"its inputs: {', '.join(self)}" if self else "it has no inputs: pass dataset.as_named_input(…)"
        raise UserErrorException(f"this run has no input dataset {name!r}", hint=hint)


def datasets_of_this_script() -> InputDatasets:
    inputs = json.loads(os.environ.get(INPUTS) or "{}")
    return InputDatasets((name, _input_value(name, entry)) for name, entry in inputs.items())


def datasets_of_run(view: dict[str, Any], workspace: Any) -> InputDatasets:
    """Outside of the script there are no paths: each value is the dataset."""
    return InputDatasets((use["name"], _dataset(use, workspace)) for use in _uses(view))


def details(view: dict[str, Any], workspace: Any) -> list[dict[str, Any]]:
    """Return `get_details()['inputDatasets']`."""
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
    """Return `get_details()['runDefinition']['data']`."""
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


def _input_value(name: str, entry: dict[str, Any]) -> Union[str, AbstractDataset]:
    path = os.environ.get(f"{REFERENCE_VARIABLE_PREFIX}{name}", "")
    if not entry["direct"]:
        return path
    from runyard.sdk.data.base import dataset_from_view

    dataset = dataset_from_view(entry["dataset"], None)
    dataset._local_path = Path(path)
    dataset._applied_steps = len(dataset._definition.steps) if dataset._definition.kind == "file" else 0
    return dataset


def _dataset(use: dict[str, Any], workspace: Any) -> AbstractDataset:
    from runyard.sdk.data.base import AbstractDataset

    return AbstractDataset.get_by_id(workspace, use["dataset"]["id"])


def _uses(view: dict[str, Any]) -> list[dict[str, Any]]:
    return [use for use in (view["spec"] or {}).get("data", ()) if use.get("dataset")]
