"""From a sweep and the values of a child to an ordinary run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from runyard.spec.data import DOWNLOAD, RESUME_ARGUMENT, RESUMED, RUN_FILES, DataUse, place_of_run_file
from runyard.spec.json import to_json
from runyard.spec.space import as_text
from runyard.spec.sweep import SweepSpec, Trial
from runyard.store.runs import RunRecord
from runyard.wire.runs import SubmitRun


def child_request(spec: SweepSpec, parent: RunRecord, trial: Trial) -> SubmitRun:
    values, data = dict(trial.parameters), list(spec.child.get("data") or ())
    if trial.resumes:  # a copy: the earlier run keeps its own, and others may go on from it too
        use = DataUse(RESUMED, RUN_FILES, place_of_run_file(trial.resumes, "outputs"), DOWNLOAD)
        values[RESUME_ARGUMENT] = use.placeholder
        data = [*(one for one in data if one["name"] != RESUMED), to_json(use)]
    assert parent.snapshot_id is not None
    return SubmitRun(
        run_id=trial.run_id,
        experiment=parent.experiment,
        spec={**spec.child, "arguments": arguments_of(spec.child["arguments"], values), "data": data},
        snapshot_id=parent.snapshot_id,
        tags={"hyperparameters": json.dumps(trial.parameters)},
        properties={} if not trial.resumes else {"resumed_from": trial.resumes},
        submitted_by=parent.submitted_by or "",
        parent_id=parent.run_id,
    )


def arguments_of(given: Sequence[str], parameters: dict[str, object]) -> list[str]:
    """Those of every child, without the ones that are varied, then each drawn value by its name."""
    varied = {name.lstrip("-") for name in parameters}
    kept: list[str] = []
    skips_value = False
    for word in given:
        is_name = word.startswith("-") and not _is_number(word)
        if skips_value and not is_name:
            continue  # all values of an argument that is varied
        name, equals, _ = word.lstrip("-").partition("=")
        is_varied = is_name and name in varied
        skips_value = is_varied and not equals  # what follows --lr=0.1 is not its value
        if not is_varied:
            kept.append(word)
    for name, value in parameters.items():
        kept += [name if name.startswith("-") else f"--{name}", as_text(value)]
    return kept


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
