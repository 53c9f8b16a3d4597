"""A callback for the Trainer of Hugging Face Transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from transformers import TrainerCallback
from transformers.integrations import integration_utils

from runyard.errors import UserErrorException
from runyard.integrations import logged_run

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run


class RunyardCallback(TrainerCallback):  # type: ignore[misc]  # Transformers has no type information here
    """Logs metrics, arguments and checkpoints to the run of this script, or to an interactive run.

    Only the process of rank 0 writes. After this module was imported, ``report_to="runyard"`` adds the callback too.

    Example::

        Trainer(model, arguments, callbacks=[RunyardCallback()])

    Args:
        experiment: Experiment of the interactive run that is started outside of a run.
        name: Name of the interactive run; the default is ``run_name`` of the arguments.
        log_checkpoints: True uploads the best checkpoint, or else the last one, at the end of the training; ``"all"``
            each one when it is saved. Those below ``outputs/`` of a submitted run are stored in any case.
    """

    def __init__(
        self,
        experiment: str = "transformers",
        name: Optional[str] = None,
        *,
        log_checkpoints: Union[bool, str] = False,
    ) -> None:
        if log_checkpoints not in (True, False, "all"):
            raise UserErrorException(f"log_checkpoints must be True, False or 'all', got {log_checkpoints!r}")
        self._log_checkpoints = log_checkpoints
        self._logged_run = logged_run.LoggedRun(experiment, name)

    @property
    def run(self) -> Optional[Run]:
        """The run; None before the training has begun, and in the processes that do not write."""
        return self._logged_run.run

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if state.is_world_process_zero:
            run = self._open(args)
            to_dict = getattr(getattr(model, "config", None), "to_dict", None)
            logged_run.log_params(run, {**args.to_dict(), **({"model": to_dict()} if to_dict else {})})

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            logged_run.log_numbers(self._open(args), logs, state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero and self._log_checkpoints == "all":
            self._upload(args, Path(args.output_dir, f"checkpoint-{state.global_step}"))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero and self._log_checkpoints is True:
            paths = sorted(Path(args.output_dir).glob("checkpoint-*"), key=lambda path: path.stat().st_mtime)
            best = state.best_model_checkpoint
            for path in [Path(best)] if best else paths[-1:]:
                self._upload(args, path)

    def _upload(self, args: Any, path: Path) -> None:
        if path.is_dir():
            logged_run.upload(self._open(args), f"checkpoints/{path.name}", path)

    def _open(self, args: Any) -> Run:
        return self._logged_run.open(getattr(args, "run_name", None))


integration_utils.INTEGRATION_TO_CALLBACK["runyard"] = RunyardCallback
