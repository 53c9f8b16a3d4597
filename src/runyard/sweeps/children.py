"""From a sweep and the values of a child to an ordinary run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from runyard.orchestrator.rooms import Rooms
from runyard.spec.space import as_text
from runyard.spec.sweep import SweepSpec, Trial
from runyard.store.runs import RunRecord
from runyard.wire.runs import SubmitRun


def child_request(spec: SweepSpec, parent: RunRecord, trial: Trial, earlier: Path | None) -> SubmitRun:
    arguments = list(arguments_of(spec.child["arguments"], trial.parameters))
    if earlier is not None:
        arguments += ["--resume-from", str(earlier)]
    assert parent.snapshot_id is not None
    return SubmitRun(
        run_id=trial.run_id,
        experiment=parent.experiment,
        spec={**spec.child, "arguments": arguments},
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


def lay_out_earlier_outputs(rooms: Rooms, trial: Trial) -> Path | None:
    """The outputs of the run that this one goes on from, copied: the earlier run keeps its own."""
    if not trial.resumes:
        return None
    folder = rooms.folder(trial.run_id).root / "resumed"
    if folder.is_dir():  # laid out by a yard that was killed before it submitted the child
        return folder / "outputs"
    half = folder.with_name("resumed.half")
    shutil.rmtree(half, ignore_errors=True)
    (half / "outputs").mkdir(parents=True)
    for kept in rooms.artifacts.files(trial.resumes):
        if kept.path.startswith("outputs/"):
            target = half / kept.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(rooms.artifacts.path_of(trial.resumes, kept.path), target)
    half.replace(folder)
    return folder / "outputs"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
