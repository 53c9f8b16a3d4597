"""A logger for Lightning's Trainer and Fabric, of the package `lightning` or `pytorch_lightning`."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from runyard.errors import UserErrorException
from runyard.integrations import logged_run

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _package() -> str:
    """The package that the script has imported, else the one that is installed: their classes are not the same."""
    for name in _PACKAGES:
        if name in sys.modules:
            return name
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.split(".")[0]):
                raise
        else:
            return name
    raise ModuleNotFoundError("neither lightning nor pytorch_lightning is installed", name="lightning")


_base: Any = importlib.import_module(f"{_package()}.loggers").Logger
_rank_zero_only: Any = importlib.import_module(f"{_package()}.utilities.rank_zero").rank_zero_only


class RunyardLogger(_base):  # type: ignore[misc]  # a class of the installed package
    """Logs metrics, hyperparameters and checkpoints to the run of this script, or to an interactive run.

    Only the process of rank 0 writes. In a submitted run, checkpoints are saved below ``outputs/`` unless the callback
    has a ``dirpath``, and are stored with the run.

    Example::

        Trainer(logger=RunyardLogger())

    Args:
        experiment: Experiment of the interactive run that is started outside of a run.
        name: Name of the interactive run.
        log_checkpoints: True uploads the checkpoints that exist at the end of the training, ``"all"`` each one when it
            is saved. Those below ``outputs/`` of a submitted run are stored in any case.
    """

    def __init__(
        self,
        experiment: str = "lightning",
        name: Optional[str] = None,
        *,
        log_checkpoints: Union[bool, str] = False,
    ) -> None:
        super().__init__()
        if log_checkpoints not in (True, False, "all"):
            raise UserErrorException(f"log_checkpoints must be True, False or 'all', got {log_checkpoints!r}")
        self._experiment, self._log_checkpoints = experiment, log_checkpoints
        self._logged_run = logged_run.LoggedRun(experiment, name)
        self._checkpoint_callback: Any = None
        self._uploaded: dict[str, float] = {}  # path of a checkpoint -> its time of change

    @property
    def experiment(self) -> Optional[Run]:
        """The run, to log anything else; None in the processes that do not write."""
        return self._logged_run.open() if _rank_zero_only.rank == 0 else None

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return os.environ.get("AZUREML_ARM_PROJECT_NAME", self._experiment)

    @property
    def version(self) -> Optional[str]:
        """Id of the run; None in the other processes of an interactive run."""
        return self._logged_run.open().id if _rank_zero_only.rank == 0 else self._logged_run.run_id

    @property
    def save_dir(self) -> Optional[str]:
        """The folder for checkpoints: that of the outputs, which are stored with a submitted run."""
        return "outputs" if "RUNYARD_RUN_ID" in os.environ else None

    def log_metrics(self, metrics: Mapping[str, Any], step: Optional[int] = None) -> None:
        if _rank_zero_only.rank == 0:
            logged_run.log_numbers(self._logged_run.open(), metrics, step)

    def log_hyperparams(self, params: Union[Mapping[str, Any], Namespace, None], *args: Any, **kwargs: Any) -> None:
        values = vars(params) if isinstance(params, Namespace) else dict(params or {})
        if values and _rank_zero_only.rank == 0:
            logged_run.log_params(self._logged_run.open(), values)

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        self._checkpoint_callback = checkpoint_callback
        if self._log_checkpoints == "all":
            self._upload_checkpoints()

    def finalize(self, status: str) -> None:
        """Upload the checkpoints. The run stays open: a test may follow the training."""
        if self._log_checkpoints is True:
            self._upload_checkpoints()

    def _upload_checkpoints(self) -> None:
        callback = self._checkpoint_callback
        if callback is None or _rank_zero_only.rank != 0:
            return
        best = getattr(callback, "best_model_path", "")
        paths = [best, getattr(callback, "last_model_path", ""), *getattr(callback, "best_k_models", {})]
        for path in map(Path, dict.fromkeys(filter(None, paths))):
            if not path.exists():
                continue
            changed_at = path.stat().st_mtime
            if self._uploaded.get(str(path)) != changed_at:
                self._uploaded[str(path)] = changed_at
                logged_run.upload(self._logged_run.open(), f"checkpoints/{path.name}", path)
        if best and Path(best).exists():
            self._logged_run.open().tag("best_checkpoint", Path(best).name)
