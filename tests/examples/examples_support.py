"""What tests of examples ask of the runs that they made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from runyard import Estimator, Experiment, Run, Workspace

ROOT = Path(__file__).parents[2]


def in_one_process(
    yard: Workspace, kind: type[Estimator], name: str, *, pip: Sequence[str] = ("scikit-learn",), **given: object
) -> list[float]:
    """The losses of the same script on the same global batches, by one process."""
    project = ROOT / "examples" / name / "project"
    run = Experiment(yard, "alone").submit(
        kind(project, entry_script="train.py", compute_target="local", pip_packages=list(pip), **given)
    )
    run.wait_for_completion()
    losses: list[float] = run.get_metrics()["loss"]
    return losses


def ranks_agree(run: Run, ranks: int) -> list[float]:
    metrics = run.get_metrics()
    each = [metrics[f"loss_of_rank_{rank}"] for rank in range(ranks)]
    for other in each[1:]:
        assert other == pytest.approx(each[0], rel=1e-5)
    first: list[float] = each[0]
    return first
