"""The run that a framework's logger writes to: the run of this script, or an interactive run of this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import YardUnavailable

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

log = logging.getLogger("runyard")


class LoggedRun:
    """The run of a logger, opened on first use: that of this script, or an interactive one that ends with this process.

    Copies in other processes, to which frameworks pass their loggers, use the same run.

    Args:
        experiment: Experiment of an interactive run; letters that names cannot have are replaced.
        name: Name of an interactive run.
    """

    def __init__(self, experiment: str, name: Optional[str] = None) -> None:
        self._experiment, self._name = experiment, name
        self._run: Optional[Run] = None
        self._run_id = os.environ.get("RUNYARD_RUN_ID")

    @property
    def run(self) -> Optional[Run]:
        """The run; None if it is not open."""
        return self._run

    @property
    def run_id(self) -> Optional[str]:
        """Id of the run; None if it is interactive and not open."""
        return self._run_id

    def open(self, name: Optional[str] = None) -> Run:
        """Return the run; open it if it is not.

        Args:
            name: Name of an interactive run that has none.
        """
        if self._run is None:
            self._run = _existing_run(self._run_id) if self._run_id else self._begin(name)
            self._run_id = self._run.id
        return self._run

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None}  # a run is open in one process, and cannot be copied

    def _begin(self, name: Optional[str]) -> Run:
        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.training.submit import begin_run
        from runyard.spec.names import to_experiment_name

        return begin_run(Experiment(to_experiment_name(self._experiment)), name=self._name or name)


def _existing_run(run_id: str) -> Run:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run

    if os.environ.get("RUNYARD_RUN_ID") == run_id:  # needs no request
        run = Run.get_context(allow_offline=False)
        assert isinstance(run, Run)
        return run
    return Run.get(Workspace(), run_id)


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


def log_params(run: Run, params: Mapping[str, Any]) -> None:
    """Record hyperparameters. Training does not stop if the yard does not respond."""
    try:
        run.log_params({str(name): value for name, value in params.items()})
    except YardUnavailable as error:
        log.warning("hyperparameters of run %s are not recorded: %s", run.id, error)


def upload(run: Run, name: str, path: Path) -> None:
    """Add a file or folder to the run, unless it is stored with the outputs of the run when the script ends."""
    outputs = Path("outputs").resolve()
    if run._inside and outputs in path.resolve().parents:
        return
    try:
        if path.is_dir():
            run.upload_folder(name, str(path))
        else:
            run.upload_file(name, path)
    except YardUnavailable as error:
        log.warning("%s is not stored with run %s: %s", path, run.id, error)
