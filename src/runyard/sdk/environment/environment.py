"""The Python environment of a run: interpreter, packages, container image and variables."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

from runyard.errors import EnvironmentException, UserErrorException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core import validation
from runyard.sdk.core.secrets import Secret
from runyard.sdk.core.sections import Section
from runyard.sdk.environment import curated
from runyard.sdk.environment.build import EnvironmentBuild
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.requirements_file import requirement_lines
from runyard.sdk.environment.sections import ContainerRegistry, DockerSection, PythonSection, SparkSection
from runyard.spec.environment import Container, EnvironmentSpec, Framework
from runyard.spec.json import from_json

_REGISTERED = "/api/environments/registered"
_FILE = "azureml_environment.json"
_CONDA_FILE = "conda_dependencies.yml"
# Default base images of the SDK v1: they contain only a Python, so an isolated environment replaces them.
_V1_BASE_IMAGE = re.compile(r"(?:.*/)?azureml/(?:base|intelmpi|openmpi)[^/]*", re.IGNORECASE)
_SIGN_IN = "the yard does not store registry credentials; sign in with podman login or docker login"


class Environment(Section):
    """The Python that a run is started in.

    Args:
        name: Name of the environment, without ``/``.
        **settings: Attributes to set, for example ``environment_variables={...}``.
    """

    _types = {"python": (PythonSection,), "docker": (DockerSection,), "spark": (SparkSection,), "name": (str,)}

    def __init__(self, name: str, **settings: Any) -> None:
        if not isinstance(name, str) or not name.strip() or "/" in name:
            raise validation.invalid("the name of an environment", name, "text without '/'", error=UserErrorException)
        self.name = name
        self.version: Optional[str] = None  # assigned by the yard at registration
        self.python = PythonSection()
        self.docker = DockerSection()
        self.spark = SparkSection()
        self._inferencing_stack: Optional[str] = None
        self._variables: dict[str, Any] = {}
        self._frameworks: tuple[Framework, ...] = ()
        self._freeze_names()
        for setting, value in settings.items():
            setattr(self, setting, value)

    @staticmethod
    def from_conda_specification(name: str, file_path: Any) -> Environment:
        """Create an environment from a conda YAML file."""
        environment = Environment(name)
        environment.python.conda_dependencies = CondaDependencies(file_path)
        return environment

    @staticmethod
    def from_existing_conda_environment(name: str, conda_environment_name: str) -> Environment:
        """Create an environment with the packages of a conda environment of this machine (``conda env export``)."""
        conda = shutil.which("conda") or shutil.which("mamba") or shutil.which("micromamba")
        if conda is None:
            raise UserErrorException(
                f"conda is not installed here, so environment {conda_environment_name!r} cannot be read",
                hint="describe it with Environment.from_conda_specification(name, file)",
            )
        command = [conda, "env", "export", "--name", conda_environment_name, "--no-builds", "--json"]
        export = subprocess.run(command, capture_output=True, text=True, check=False)
        if export.returncode != 0:
            output = (export.stderr or export.stdout).strip().splitlines() or ["no output"]
            raise UserErrorException(f"conda has no environment {conda_environment_name!r}: {output[-1]}")
        environment = Environment(name)
        environment.python.conda_dependencies = CondaDependencies(_underlying_structure=json.loads(export.stdout))
        return environment

    @staticmethod
    def from_pip_requirements(name: str, file_path: Any, pip_version: Optional[str] = None) -> Environment:
        """Create an environment from a pip requirements file."""
        warn_ignored("Environment.from_pip_requirements", "pip_version", pip_version, "the yard installs with uv")
        file = Path(validation.path("file_path", file_path, error=UserErrorException) or "")
        environment = Environment(name)
        dependencies = environment.python.conda_dependencies = CondaDependencies.create(pip_packages=[])
        dependencies._add_pip_lines(requirement_lines(file, within=Path(file.resolve().anchor)))
        return environment

    @staticmethod
    def from_docker_image(
        name: str,
        image: str,
        container_registry: Optional[ContainerRegistry] = None,
        conda_specification: Any = None,
        pip_requirements: Any = None,
    ) -> Environment:
        """Create an environment from a container image.

        Args:
            name: Name of the environment.
            image: The image, as podman or docker would pull it.
            container_registry: Registry of the image, if not part of its name.
            conda_specification: Conda file with packages to install; excludes ``pip_requirements``.
            pip_requirements: Requirements file with packages to install. Without packages, the Python of the image is
                used unchanged.
        """
        if conda_specification and pip_requirements:
            raise UserErrorException("conda_specification and pip_requirements exclude each other", hint="pass one")
        if conda_specification:
            environment = Environment.from_conda_specification(name, conda_specification)
        elif pip_requirements:
            environment = Environment.from_pip_requirements(name, pip_requirements)
        else:
            environment = Environment(name)
            environment.python.user_managed_dependencies = True
        environment.docker.base_image = image
        if container_registry:
            environment.docker.base_image_registry = container_registry
        return environment

    @staticmethod
    def from_dockerfile(
        name: str, dockerfile: Any, conda_specification: Any = None, pip_requirements: Any = None
    ) -> Environment:
        """Create an environment from a Dockerfile, given as its path or its text.

        The yard does not build images: submitting a run with this environment raises an error that explains how to
        build the image and use it.
        """
        environment = Environment.from_docker_image(name, "", None, conda_specification, pip_requirements)
        text = str(dockerfile)
        is_path = "\n" not in text and Path(text).is_file()
        environment.docker.base_image = None
        environment.docker.base_dockerfile = Path(text).read_text(encoding="utf-8") if is_path else text
        return environment

    @staticmethod
    def from_docker_build_context(name: str, docker_build_context: Any) -> Environment:
        environment = Environment(name)
        environment.docker.build_context = docker_build_context
        return environment

    @staticmethod
    def get(workspace: Any, name: str, version: Optional[str] = None, label: Optional[str] = None) -> Environment:
        """Return a registered or a curated environment.

        Args:
            workspace: The workspace that contains it.
            name: Its name.
            version: A version such as ``"1"``; the newest by default.
            label: Only ``"latest"`` exists.
        """
        if curated.is_curated(name):
            return Environment._from_curated(name)
        if label is not None and str(label).lower() != "latest":
            raise UserErrorException(f"environments have no label {label!r} here", hint="request a version instead")
        if version is not None and not str(version).isdecimal():
            raise validation.invalid("version", version, "a number, as text: '1'", error=UserErrorException)
        return Environment._from_view(workspace.connection.get(f"{_REGISTERED}/{name}", version=version))

    @staticmethod
    def list(workspace: Any) -> dict[str, Environment]:
        """Return the registered environments in their newest version and the curated ones, by name."""
        environments = {name: Environment._from_curated(name, quiet=True) for name in curated.NAMES}
        for view in workspace.connection.get(_REGISTERED):
            environments[view["name"]] = Environment._from_view(view)
        return environments

    def register(self, workspace: Any) -> Environment:
        """Store the definition in the yard. Registering an unchanged definition keeps its version."""
        if curated.is_curated(self.name):
            raise UserErrorException(
                f"the name {self.name!r} belongs to a curated environment of the yard",
                hint="register it under another name: environment.clone('my-environment')",
            )
        body = {"name": self.name, "definition": self.to_definition()}
        self.version = str(workspace.connection.post(_REGISTERED, body)["version"])
        return self

    @staticmethod
    def label(workspace: Any, name: str, version: str, labels: Any) -> None:
        raise UserErrorException(
            f"environments have no labels here: cannot set {labels!r} on {name} {version}",
            hint="Environment.get(ws, name, version) returns one version, Environment.get(ws, name) the newest",
        )

    def clone(self, new_name: str) -> Environment:
        """Return an unregistered copy under another name."""
        clone = Environment(new_name)
        clone.python = copy.deepcopy(self.python)
        clone.docker = copy.deepcopy(self.docker)
        clone.spark = copy.deepcopy(self.spark)
        clone._variables, clone._frameworks = dict(self._variables), self._frameworks
        return clone

    def save_to_directory(self, path: Any, overwrite: bool = False) -> None:
        """Write ``azureml_environment.json`` and the packages as ``conda_dependencies.yml`` into a folder."""
        folder = Path(validation.path("path", path, error=UserErrorException) or ".")
        if folder.exists() and not overwrite:
            raise UserErrorException(f"{str(folder)!r} exists already", hint="overwrite=True writes into it")
        folder.mkdir(parents=True, exist_ok=True)
        content = {"name": self.name, "version": self.version, **self.to_definition()}
        (folder / _FILE).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
        self.python.conda_dependencies.save(folder / _CONDA_FILE)

    @staticmethod
    def load_from_directory(path: Any) -> Environment:
        """Read an environment that ``save_to_directory`` wrote; the packages are those of its conda file."""
        file = Path(validation.path("path", path, error=UserErrorException) or ".") / _FILE
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            name, version = content.pop("name"), content.pop("version", None)
        except (OSError, ValueError, KeyError) as error:
            raise UserErrorException(
                f"cannot read an environment from {str(file)!r}: {error}",
                hint="environment.save_to_directory(folder) writes one",
            ) from error
        environment = Environment.from_definition(name, content, version)
        if (file.parent / _CONDA_FILE).is_file():
            environment.python.conda_dependencies = CondaDependencies(file.parent / _CONDA_FILE)
        return environment

    @staticmethod
    def add_private_pip_wheel(workspace: Any, file_path: Any, exist_ok: bool = False) -> str:
        """Return the URL of a wheel for ``add_pip_package``. The yard installs it from its present location."""
        wheel = Path(validation.path("file_path", file_path, error=UserErrorException) or "").absolute()
        if not wheel.is_file() or wheel.suffix != ".whl":
            raise UserErrorException(f"no wheel at {str(wheel)!r}", hint="pass the path of a file that ends in .whl")
        return wheel.as_uri()

    def build(self, workspace: Any, image_build_compute: Any = None) -> EnvironmentBuild:
        """Build the environment now, so that runs that need it later start without waiting.

        Returns:
            The build in progress; ``wait_for_completion()`` waits for its end.
        """
        warn_ignored(
            "Environment.build", "image_build_compute", image_build_compute, "the yard itself builds environments"
        )
        return EnvironmentBuild.submit(workspace, self)

    def build_local(self, workspace: Any, platform: Any = None, **kwargs: Any) -> EnvironmentBuild:
        """Build the environment and wait. Same as :meth:`build`, because the yard runs on this machine."""
        warn_ignored("Environment.build_local", "platform", platform, "it is built for the machine that uses it")
        for argument, value in kwargs.items():
            warn_ignored("Environment.build_local", argument, value, "the yard builds it as it does for a run")
        build = self.build(workspace)
        build.wait_for_completion(show_output=True)
        return build

    def get_image_details(self, workspace: Any) -> dict[str, Any]:
        """Return name, version and ``dockerImage``, which is None if the environment has no image."""
        image = self.docker.base_image or None
        return {"name": self.name, "version": self.version, "dockerImage": {"name": image} if image else None}

    @property
    def environment_variables(self) -> dict[str, Any]:
        return self._variables

    @environment_variables.setter
    def environment_variables(self, value: Optional[dict[str, Any]]) -> None:
        _reject_secrets(validation.variables("environment_variables", value, error=UserErrorException) or {})
        self._variables = {} if value is None else value

    @property
    def inferencing_stack_version(self) -> Optional[str]:
        return self._inferencing_stack

    @inferencing_stack_version.setter
    def inferencing_stack_version(self, value: Optional[str]) -> None:
        warn_ignored(self, "inferencing_stack_version", value, "the yard serves models with its own server")
        self._inferencing_stack = value

    def to_spec(self, source_directory: Optional[Path] = None) -> EnvironmentSpec:
        """Return the value that the yard builds the environment from.

        Args:
            source_directory: Folder that a relative ``conda_dependencies_file`` refers to.
        """
        variables = validation.variables("environment_variables", self._variables, error=UserErrorException) or {}
        _reject_secrets(variables)
        container = self._container()
        self.spark._report_no_effect()
        interpreter, file = self.python.interpreter_path, self.python.conda_dependencies_file
        if self.python.user_managed_dependencies:
            return EnvironmentSpec(
                name=self.name,
                gpu=self.docker.gpu_support,
                user_managed=True,
                # 'python' on the submitter's PATH is rarely the Python that imported this library
                interpreter=sys.executable if interpreter == "python" and container is None else interpreter,
                container=container,
                variables=variables,
            )
        dependencies = (
            self.python.conda_dependencies if file is None else CondaDependencies((source_directory or Path()) / file)
        )
        conda = tuple(dependencies._conda)
        return EnvironmentSpec(
            name=self.name,
            python=dependencies._explicit_python,
            frameworks=self._frameworks,
            pip=tuple(dependencies._explicit_pip_lines),
            conda=conda,
            channels=tuple(dependencies.conda_channels) if conda else (),
            gpu=self.docker.gpu_support,
            container=container,
            variables=variables,
        )

    @staticmethod
    def from_spec(spec: Any) -> Environment:
        """Return the environment of a run, from its EnvironmentSpec or the JSON of it."""
        if isinstance(spec, dict):
            spec = from_json(EnvironmentSpec, spec)
        environment = Environment(spec.name)
        environment._frameworks, environment._variables = spec.frameworks, dict(spec.variables)
        environment.python.user_managed_dependencies = spec.user_managed
        environment.python.interpreter_path = spec.interpreter or "python"
        python = [f"python={spec.python}"] if spec.python else []
        environment.python.conda_dependencies = CondaDependencies(
            _underlying_structure={
                "dependencies": [*python, *spec.conda, {"pip": list(spec.pip)}],
                "channels": list(spec.channels),
            }
        )
        docker = environment.docker
        docker.gpu_support = spec.gpu
        if spec.container is not None:
            docker.enabled = True
            docker.base_image = spec.container.image
            docker.base_image_registry.address = spec.container.registry or None
            docker.arguments = list(spec.container.arguments)
            docker.shm_size = spec.container.shm_size or None
        return environment

    def to_definition(self) -> dict[str, Any]:
        """Return plain JSON without name and version: equal definitions are the same environment."""
        return {
            "frameworks": [{"name": f.name, "version": f.version} for f in self._frameworks],
            "python": self.python._to_definition(),
            "docker": self.docker._to_definition(),
            "environmentVariables": dict(self._variables),
        }

    @staticmethod
    def from_definition(name: str, definition: dict[str, Any], version: Optional[str] = None) -> Environment:
        """Return the environment that ``to_definition`` described."""
        environment = Environment(name)
        environment.python._load(definition.get("python", {}))
        environment.docker._load(definition.get("docker", {}))
        environment._variables = dict(definition.get("environmentVariables") or {})
        environment._frameworks = tuple(Framework(f["name"], f["version"]) for f in definition.get("frameworks", ()))
        environment.version = version
        return environment

    def __repr__(self) -> str:
        return json.dumps({"name": self.name, "version": self.version, **self.to_definition()}, indent=4, default=str)

    @staticmethod
    def _from_curated(name: str, quiet: bool = False) -> Environment:
        frameworks, gpu = curated.resolve(name, quiet=quiet)
        environment = Environment(name)
        environment._frameworks = frameworks
        environment.docker.gpu_support = gpu
        environment.version = "1"
        return environment

    @staticmethod
    def _from_view(view: dict[str, Any]) -> Environment:
        return Environment.from_definition(view["name"], view["definition"], str(view["version"]))

    def _container(self) -> Optional[Container]:
        docker = self.docker
        if docker.base_dockerfile or docker.build_context:
            raise EnvironmentException(
                f"environment {self.name!r} requires building an image, which is not available in this version",
                hint="build it with podman or docker and name it in environment.docker.base_image",
            )
        if not docker.base_image:
            return None
        if _V1_BASE_IMAGE.fullmatch(docker.base_image):
            validation.log.info("image %s contains only a Python; using an isolated environment", docker.base_image)
            return None
        registry = docker.base_image_registry
        for argument in ("username", "password"):
            warn_ignored(docker, f"base_image_registry.{argument}", getattr(registry, argument) or None, _SIGN_IN)
        return Container(
            image=docker.base_image,
            registry=registry.address or "",
            arguments=tuple(str(argument) for argument in docker.arguments),
            shm_size=docker.shm_size or "",
        )


def _reject_secrets(variables: dict[str, Any]) -> None:
    """An environment is shared by runs and stored with its variables; a secret belongs to a run."""
    for name, value in variables.items():
        if isinstance(value, Secret):
            raise UserErrorException(
                f"environment_variables[{name!r}] of an environment cannot be a Secret",
                hint="set it for the run: run_config.environment_variables, or environment_variables of an estimator",
            )
