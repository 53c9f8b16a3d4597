"""Builds the submission request of a child run from the sweep and the child's parameter values."""

from __future__ import annotations

import json
from collections.abc import Sequence

from runyard.spec.data import DOWNLOAD, RESUME_ARGUMENT, RESUME_INPUT, RUN_FILES_STORE, DataUse, run_file_path
from runyard.spec.json import to_json
from runyard.spec.space import to_argument
from runyard.spec.sweep import SweepSpec, Trial
from runyard.store.runs import RunRecord
from runyard.wire.runs import SubmitRun


def child_request(spec: SweepSpec, parent: RunRecord, trial: Trial) -> SubmitRun:
    values, data = dict(trial.parameters), list(spec.child.get("data") or ())
    if trial.resumes:  # a copy: other children may resume from the same outputs
        use = DataUse(RESUME_INPUT, RUN_FILES_STORE, run_file_path(trial.resumes, "outputs"), DOWNLOAD)
        values[RESUME_ARGUMENT] = use.placeholder
        data = [*(item for item in data if item["name"] != RESUME_INPUT), to_json(use)]
    assert parent.snapshot_id is not None
    return SubmitRun(
        run_id=trial.run_id,
        experiment=parent.experiment,
        spec={**spec.child, "arguments": child_arguments(spec.child["arguments"], values), "data": data},
        snapshot_id=parent.snapshot_id,
        tags={"hyperparameters": json.dumps(trial.parameters)},
        properties={} if not trial.resumes else {"resumed_from": trial.resumes},
        submitted_by=parent.submitted_by or "",
        parent_id=parent.run_id,
    )


def child_arguments(template: Sequence[str], parameters: dict[str, object]) -> list[str]:
    """The common arguments without those that the sweep varies, followed by the child's own values."""
    varied = {name.lstrip("-") for name in parameters}
    arguments: list[str] = []
    skips_value = False
    for word in template:
        is_name = word.startswith("-") and not _is_number(word)
        if skips_value and not is_name:
            continue  # a value of a varied argument
        name, equals, _ = word.lstrip("-").partition("=")
        is_varied = is_name and name in varied
        skips_value = is_varied and not equals  # the word after --lr=0.1 is not its value
        if not is_varied:
            arguments.append(word)
    for name, value in parameters.items():
        arguments += [name if name.startswith("-") else f"--{name}", to_argument(value)]
    return arguments


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
