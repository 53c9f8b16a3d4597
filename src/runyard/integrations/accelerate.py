"""A tracker for Hugging Face Accelerate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from accelerate import tracking
from accelerate.tracking import GeneralTracker, on_main_process

from runyard.integrations import logged_run

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run


class RunyardTracker(GeneralTracker):  # type: ignore[misc]  # Accelerate has no type information
    """Logs metrics and the configuration to the run of this script, or to an interactive run.

    Only the main process writes. Importing this module also registers the name ``"runyard"`` with versions of
    Accelerate that have a registry of trackers.

    Example::

        accelerator = Accelerator(log_with=RunyardTracker())
        accelerator.init_trackers("digits", config={"lr": 0.1})

    Args:
        experiment: Experiment of the interactive run that is started outside of a run.
        run_name: Name of the interactive run.
    """

    name = "runyard"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, experiment: str = "accelerate", run_name: Optional[str] = None) -> None:
        super().__init__()
        self._logged_run = logged_run.LoggedRun(experiment, run_name)

    @property
    def tracker(self) -> Optional[Run]:
        """The run, to log anything else; None in the processes that do not write."""
        return self._logged_run.run

    @on_main_process  # type: ignore[untyped-decorator]
    def start(self) -> None:
        self._logged_run.open()

    @on_main_process  # type: ignore[untyped-decorator]
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        logged_run.log_params(self._logged_run.open(), values)

    @on_main_process  # type: ignore[untyped-decorator]
    def log(self, values: Mapping[str, Any], step: Optional[int] = None, **_: Any) -> None:
        logged_run.log_numbers(self._logged_run.open(), values, step)

    @on_main_process  # type: ignore[untyped-decorator]
    def log_figure(self, figure: Any, artifact_file: str, **_: Any) -> None:
        """Log a matplotlib figure as an image."""
        self._logged_run.open().log_image(artifact_file, plot=figure)

    @on_main_process  # type: ignore[untyped-decorator]
    def log_artifact(self, local_path: str, artifact_path: Optional[str] = None) -> None:
        """Add a file to the run, in the folder ``artifact_path``."""
        name = Path(local_path).name
        logged_run.upload(
            self._logged_run.open(), f"{artifact_path}/{name}" if artifact_path else name, Path(local_path)
        )

    @on_main_process  # type: ignore[untyped-decorator]
    def log_artifacts(self, local_dir: str, artifact_path: Optional[str] = None) -> None:
        """Add the files of a folder to the run, such as those of ``accelerator.save_state``."""
        logged_run.upload(self._logged_run.open(), artifact_path or Path(local_dir).name, Path(local_dir))

    @on_main_process  # type: ignore[untyped-decorator]
    def finish(self) -> None:
        """End an interactive run; a submitted one ends with its script."""
        run = self._logged_run.run
        if run is not None and run._session is not None:
            run.complete()


if hasattr(tracking, "register_tracker_class"):
    tracking.register_tracker_class(RunyardTracker)
