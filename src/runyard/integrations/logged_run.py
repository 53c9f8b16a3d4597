"""The run that a framework's logger writes to: the run of this script, or an interactive run of this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run


def open_run(experiment: str, name: Optional[str] = None) -> Run:
    """Return the run of this script; outside of a run, start an interactive one, which ends with this process.

    Args:
        experiment: Experiment of an interactive run; letters that names cannot have are replaced.
        name: Name of an interactive run.
    """
    from runyard.sdk.run.run import Run

    if os.environ.get("RUNYARD_RUN_ID"):
        run = Run.get_context(allow_offline=False)
        assert isinstance(run, Run)
        return run
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.training.submit import begin_run
    from runyard.spec.names import to_experiment_name

    return begin_run(Experiment(to_experiment_name(experiment)), name=name)


def existing_run(run_id: str) -> Run:
    """Open a run by its id; the run of this script needs no request."""
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run

    if os.environ.get("RUNYARD_RUN_ID") == run_id:
        return open_run("")
    return Run.get(Workspace(), run_id)


def is_first_process() -> bool:
    """True in the process that logs: rank 0, or the only one. Launchers other than the yard set RANK or similar."""
    for name in ("RANK", "RUNYARD_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"):
        rank = os.environ.get(name)
        if rank is not None and rank.isdigit():
            return int(rank) == 0
    return True


def log_numbers(run: Run, values: Mapping[str, Any], step: Optional[int]) -> None:
    """Log the values that are numbers, text or booleans; a tensor with one element is its number."""
    for name, value in values.items():
        item = getattr(value, "item", None)
        if callable(item):
            try:
                value = item()
            except (RuntimeError, TypeError, ValueError):  # more than one element
                continue
        if isinstance(value, (bool, int, float, str)):
            run.log(str(name), value, step=step)
