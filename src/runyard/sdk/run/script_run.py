"""ScriptRun: a submitted run, under the class name of the SDK v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from runyard.sdk.run.run import Run

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment


class ScriptRun(Run):
    RUN_TYPE = "azureml.scriptrun"

    def __init__(
        self,
        experiment: Experiment,
        run_id: str,
        directory: Optional[str] = None,
        _run_config: Any = None,
        *,
        _view: Optional[dict[str, Any]] = None,
        **_: Any,
    ) -> None:
        super().__init__(experiment, run_id, _view=_view)
