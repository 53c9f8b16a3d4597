"""Building an environment ahead of the runs that need it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.run.run import Run

_EXPERIMENT = "environments"  # contains the runs that only build an environment


class EnvironmentBuild:
    """A build in progress: a run of an empty script in the environment, which is ready when the run has completed."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @staticmethod
    def submit(workspace: Any, environment: Environment) -> EnvironmentBuild:
        import tempfile

        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.training.script_run_config import ScriptRunConfig

        with tempfile.TemporaryDirectory(prefix="runyard-") as folder:
            (Path(folder) / "built.py").write_text("", encoding="utf-8")
            config = ScriptRunConfig(folder, script="built.py", environment=environment)
            return EnvironmentBuild(Experiment(workspace, _EXPERIMENT).submit(config))

    @property
    def status(self) -> str:
        """``Succeeded``, ``Failed``, or the status of the run that is still building."""
        status = self.run.get_status()
        return {"Completed": "Succeeded", "Canceled": "Failed"}.get(status, status)

    @property
    def log_url(self) -> str:
        return str(self.run.get_details()["logFiles"].get("azureml-logs/20_environment_log.txt", ""))

    def wait_for_completion(self, show_output: bool = True) -> None:
        self.run.wait_for_completion(show_output=show_output)

    def __repr__(self) -> str:
        return f"EnvironmentBuild(run={self.run.id!r}, status={self.status!r})"
