"""What environments of the SDK v1 also had: other ways to describe one, files to keep it in, building it ahead."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation

if TYPE_CHECKING:
    from runyard.sdk.environment.environment import DockerSection, Environment, PythonSection
    from runyard.sdk.run.run import Run

_FILE = "azureml_environment.json"
_CONDA_FILE = "conda_dependencies.yml"
_BUILD = "environments"  # the experiment of runs that only build one


class BuildOfEnvironment:
    """A run that does nothing but need the environment: when it is completed, the environment is there."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def status(self) -> str:
        """``Succeeded``, ``Failed``, or how the run stands."""
        status = self.run.get_status()
        return {"Completed": "Succeeded", "Canceled": "Failed"}.get(status, status)

    @property
    def log_url(self) -> str:
        return str(self.run.get_details()["logFiles"].get("azureml-logs/20_environment_log.txt", ""))

    def wait_for_completion(self, show_output: bool = True) -> None:
        self.run.wait_for_completion(show_output=show_output)

    def __repr__(self) -> str:
        return f"BuildOfEnvironment(run={self.run.id!r}, status={self.status!r})"


class EnvironmentOfV1:
    if TYPE_CHECKING:
        name: str
        version: Optional[str]
        python: PythonSection
        docker: DockerSection

        def to_definition(self) -> dict[str, Any]: ...

    # described by other things

    @staticmethod
    def from_dockerfile(
        name: str, dockerfile: Any, conda_specification: Any = None, pip_requirements: Any = None
    ) -> Environment:
        """``dockerfile`` as its text or its path. Runs need the image that you build of it: see the error they give."""
        from runyard.sdk.environment.environment import Environment

        made = Environment.from_docker_image(name, "", None, conda_specification, pip_requirements)
        file = Path(str(dockerfile))
        made.docker.base_image = None
        made.docker.base_dockerfile = (
            file.read_text(encoding="utf-8") if "\n" not in str(dockerfile) and file.is_file() else str(dockerfile)
        )
        return made

    @staticmethod
    def from_docker_build_context(name: str, docker_build_context: Any) -> Environment:
        from runyard.sdk.environment.environment import Environment

        made = Environment(name)
        made.docker.build_context = docker_build_context
        return made

    @staticmethod
    def from_existing_conda_environment(name: str, conda_environment_name: str) -> Environment:
        """The packages of a conda environment of this machine, as `conda env export` lists them."""
        from runyard.sdk.environment.conda_dependencies import CondaDependencies
        from runyard.sdk.environment.environment import Environment

        conda = shutil.which("conda") or shutil.which("mamba") or shutil.which("micromamba")
        if conda is None:
            raise UserErrorException(
                f"there is no conda here to ask for the environment {conda_environment_name!r}",
                hint="describe it with Environment.from_conda_specification(name, file)",
            )
        command = [conda, "env", "export", "--name", conda_environment_name, "--no-builds", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise UserErrorException(
                f"conda has no environment {conda_environment_name!r}: {said[-1] if said else 'it said nothing'}"
            )
        made = Environment(name)
        made.python.conda_dependencies = CondaDependencies(_underlying_structure=json.loads(done.stdout))
        return made

    # kept in files

    def save_to_directory(self, path: Any, overwrite: bool = False) -> None:
        """``azureml_environment.json``, and the packages as ``conda_dependencies.yml`` beside it."""
        folder = Path(validation.path("path", path, error=UserErrorException) or ".")
        if folder.exists() and not overwrite:
            raise UserErrorException(f"{str(folder)!r} is there already", hint="overwrite=True writes into it")
        folder.mkdir(parents=True, exist_ok=True)
        content = {"name": self.name, "version": self.version, **self.to_definition()}
        (folder / _FILE).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
        self.python.conda_dependencies.save(folder / _CONDA_FILE)

    @staticmethod
    def load_from_directory(path: Any) -> Environment:
        from runyard.sdk.environment.environment import Environment

        file = Path(validation.path("path", path, error=UserErrorException) or ".") / _FILE
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            name, version = content.pop("name"), content.pop("version", None)
        except (OSError, ValueError, KeyError) as error:
            raise UserErrorException(
                f"{str(file)!r} cannot be read as an environment: {error}",
                hint="environment.save_to_directory(folder) writes one",
            ) from error
        made = Environment.from_definition(name, content, version)
        if (file.parent / _CONDA_FILE).is_file():  # where people edit it
            from runyard.sdk.environment.conda_dependencies import CondaDependencies

            made.python.conda_dependencies = CondaDependencies(file.parent / _CONDA_FILE)
        return made

    @staticmethod
    def add_private_pip_wheel(workspace: Any, file_path: Any, exist_ok: bool = False) -> str:
        """The address of a wheel for ``add_pip_package``: it stays where it is, and the yard installs it from there."""
        wheel = Path(validation.path("file_path", file_path, error=UserErrorException) or "").absolute()
        if not wheel.is_file() or wheel.suffix != ".whl":
            raise UserErrorException(f"there is no wheel {str(wheel)!r}", hint="name a file that ends in .whl")
        return wheel.as_uri()

    # built ahead

    def build(self, workspace: Any, image_build_compute: Any = None) -> BuildOfEnvironment:
        """Builds it now, by a run that does nothing else; a run that needs it later finds it there."""
        import tempfile

        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.training.script_run_config import ScriptRunConfig

        no_effect.told(
            "Environment.build", "image_build_compute", image_build_compute, "environments are built by the yard itself"
        )
        with tempfile.TemporaryDirectory(prefix="runyard-") as folder:
            (Path(folder) / "built.py").write_text("", encoding="utf-8")
            environment: Any = self
            config = ScriptRunConfig(folder, script="built.py", environment=environment)
            return BuildOfEnvironment(Experiment(workspace, _BUILD).submit(config))

    def build_local(self, workspace: Any, platform: Any = None, **kwargs: Any) -> BuildOfEnvironment:
        """The same as :meth:`build`: the yard is on this machine."""
        no_effect.told("Environment.build_local", "platform", platform, "it is built for the machine that uses it")
        for argument, value in kwargs.items():
            no_effect.told("Environment.build_local", argument, value, "the yard builds it as a run would get it")
        build = self.build(workspace)
        build.wait_for_completion(show_output=True)
        return build

    def get_image_details(self, workspace: Any) -> dict[str, Any]:
        """The image that runs are started in; ``dockerImage`` is None where they get a Python of their own."""
        image = self.docker.base_image or None
        return {"name": self.name, "version": self.version, "dockerImage": {"name": image} if image else None}

    @staticmethod
    def label(workspace: Any, name: str, version: str, labels: Any) -> None:
        raise UserErrorException(
            f"environments have no labels here: {labels!r} cannot be given to {name} {version}",
            hint="ask for a version: Environment.get(ws, name, version), or for none to get the newest",
        )
