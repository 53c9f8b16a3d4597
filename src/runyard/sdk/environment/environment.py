"""The Python of a run, as people describe it; ``to_spec`` gives the value that the yard builds from."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any, Optional

from runyard.errors import EnvironmentException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.core.sections import Section
from runyard.sdk.environment import curated
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.legacy import EnvironmentOfV1
from runyard.sdk.environment.requirements_file import requirement_lines
from runyard.spec.environment import Container, EnvironmentSpec, Framework
from runyard.spec.json import from_json

_REGISTERED = "/api/environments/registered"
# Base images that the SDK v1 put under every run: they hold nothing but a Python, so an isolated environment serves.
_V1_BASE_IMAGE = re.compile(r"(?:.*/)?azureml/(?:base|intelmpi|openmpi)[^/]*", re.IGNORECASE)
_NO_SPARK = "there is no Spark cluster: pyspark among the pip_packages runs in the script"
_SIGN_IN = "credentials are not kept by the yard; sign in with podman login or docker login"


class ContainerRegistry(Section):
    def __init__(self) -> None:
        self.address: Optional[str] = None
        self.username: Optional[str] = None
        self.password: Optional[str] = None
        self._complete()

    def __repr__(self) -> str:  # never the password: an environment is printed, stored and logged
        return f"ContainerRegistry(address={self.address!r}, username={self.username!r})"


class PythonSection(Section):
    _takes = {
        "conda_dependencies": (CondaDependencies,),
        "conda_dependencies_file": (str, type(None)),
        "interpreter_path": (str,),
        "user_managed_dependencies": (bool,),
    }

    def __init__(self) -> None:
        self.conda_dependencies = CondaDependencies()
        self.conda_dependencies_file: Optional[str] = None
        self.interpreter_path = "python"
        self.user_managed_dependencies = False
        self._complete()


class DockerSection(Section):
    _takes = {
        "enabled": (bool,),
        "base_image": (str, type(None)),
        "base_dockerfile": (str, type(None)),
        "base_image_registry": (ContainerRegistry,),
        "arguments": (list, tuple),
        "shm_size": (str, type(None)),
        "shared_volumes": (bool,),
        "gpu_support": (bool,),
    }

    def __init__(self) -> None:
        self.enabled = False
        self.base_image: Optional[str] = None
        self.base_dockerfile: Optional[str] = None
        self.base_image_registry = ContainerRegistry()
        self.build_context: Any = None
        self.arguments: list[str] = []
        self.shm_size: Optional[str] = None
        self.shared_volumes = True
        self.gpu_support = False
        self._complete()


class SparkSection(Section):
    """Kept for scripts that set it; nothing reads it."""

    def __init__(self) -> None:
        self.repositories: list[str] = []
        self.packages: list[Any] = []
        self.precache_packages = True
        self._complete()

    def _tell(self) -> None:
        for setting in ("repositories", "packages"):
            no_effect.told(self, setting, getattr(self, setting) or None, _NO_SPARK)
        no_effect.told(self, "precache_packages", None if self.precache_packages else False, _NO_SPARK)


class Environment(Section, EnvironmentOfV1):
    _takes = {"python": (PythonSection,), "docker": (DockerSection,), "spark": (SparkSection,), "name": (str,)}

    def __init__(self, name: str, **settings: Any) -> None:
        if not isinstance(name, str) or not name.strip() or "/" in name:
            raise validation.wrong("the name of an environment", name, "text without '/'", error=UserErrorException)
        self.name = name
        self.version: Optional[str] = None  # given by the yard when it is registered
        self.python = PythonSection()
        self.docker = DockerSection()
        self.spark = SparkSection()
        self._inferencing_stack: Optional[str] = None
        self._variables: dict[str, Any] = {}
        self._frameworks: tuple[Framework, ...] = ()
        self._complete()
        for setting, value in settings.items():
            setattr(self, setting, value)

    @staticmethod
    def from_conda_specification(name: str, file_path: Any) -> Environment:
        made = Environment(name)
        made.python.conda_dependencies = CondaDependencies(file_path)
        return made

    @staticmethod
    def from_pip_requirements(name: str, file_path: Any, pip_version: Optional[str] = None) -> Environment:
        no_effect.told("Environment.from_pip_requirements", "pip_version", pip_version, "the yard installs with uv")
        file = Path(validation.path("file_path", file_path, error=UserErrorException) or "")
        made = Environment(name)
        made.python.conda_dependencies = CondaDependencies.create(pip_packages=[])
        made.python.conda_dependencies._add_pip_lines(requirement_lines(file, within=Path(file.resolve().anchor)))
        return made

    @staticmethod
    def from_docker_image(
        name: str,
        image: str,
        container_registry: Optional[ContainerRegistry] = None,
        conda_specification: Any = None,
        pip_requirements: Any = None,
    ) -> Environment:
        if conda_specification and pip_requirements:
            raise UserErrorException("conda_specification and pip_requirements exclude each other", hint="give one")
        if conda_specification:
            made = Environment.from_conda_specification(name, conda_specification)
        elif pip_requirements:
            made = Environment.from_pip_requirements(name, pip_requirements)
        else:
            made = Environment(name)
            made.python.user_managed_dependencies = True
        made.docker.base_image = image
        made.docker.base_image_registry = container_registry or made.docker.base_image_registry
        return made

    @staticmethod
    def get(workspace: Any, name: str, version: Optional[str] = None, label: Optional[str] = None) -> Environment:
        if curated.is_curated(name):
            return Environment._curated(name)
        if label is not None and str(label).lower() != "latest":
            raise UserErrorException(f"environments have no label {label!r} here", hint="ask for a version instead")
        if version is not None and not str(version).isdecimal():
            raise validation.wrong("version", version, "a number, as text: '1'", error=UserErrorException)
        return Environment._registered(workspace.connection.get(f"{_REGISTERED}/{name}", version=version))

    @staticmethod
    def list(workspace: Any) -> dict[str, Environment]:
        """Name to environment: the registered ones in their newest version, and the curated ones."""
        found = workspace.connection.get(_REGISTERED)
        ours = {name: Environment._curated(name, quiet=True) for name in curated.NAMES}
        return {**ours, **{view["name"]: Environment._registered(view) for view in found}}

    def register(self, workspace: Any) -> Environment:
        """Keeps the definition in the yard; the same definition again keeps its version."""
        if curated.is_curated(self.name):
            raise UserErrorException(
                f"the name {self.name!r} belongs to an environment that comes with the yard",
                hint="register it under another name: environment.clone('my-environment')",
            )
        body = {"name": self.name, "definition": self.to_definition()}
        self.version = str(workspace.connection.post(_REGISTERED, body)["version"])
        return self

    def clone(self, new_name: str) -> Environment:
        """The same environment under another name, not registered."""
        made = Environment(new_name)
        made.python = copy.deepcopy(self.python)
        made.docker = copy.deepcopy(self.docker)
        made.spark = copy.deepcopy(self.spark)
        made._variables, made._frameworks = dict(self._variables), self._frameworks
        return made

    @property
    def environment_variables(self) -> dict[str, Any]:
        return self._variables

    @environment_variables.setter
    def environment_variables(self, value: Optional[dict[str, Any]]) -> None:
        validation.variables("environment_variables", value, error=UserErrorException)
        self._variables = {} if value is None else value

    @property
    def inferencing_stack_version(self) -> Optional[str]:
        return self._inferencing_stack

    @inferencing_stack_version.setter
    def inferencing_stack_version(self, value: Optional[str]) -> None:
        no_effect.told(self, "inferencing_stack_version", value, "the yard serves models by a server of its own")
        self._inferencing_stack = value

    def to_spec(self, source_directory: Optional[Path] = None) -> EnvironmentSpec:
        """What the yard builds. ``source_directory`` is where a relative ``conda_dependencies_file`` lies."""
        variables = validation.variables("environment_variables", self._variables, error=UserErrorException) or {}
        container = self._container()
        self.spark._tell()
        if self.python.user_managed_dependencies:
            return EnvironmentSpec(
                name=self.name,
                gpu=self.docker.gpu_support,
                user_managed=True,
                interpreter=self._interpreter(container),
                container=container,
                variables=variables,
            )
        dependencies = self._dependencies(source_directory)
        conda = tuple(dependencies._conda)
        return EnvironmentSpec(
            name=self.name,
            python=dependencies._chosen_python,
            frameworks=self._frameworks,
            pip=tuple(dependencies._chosen_pip_lines),
            conda=conda,
            channels=tuple(dependencies.conda_channels) if conda else (),
            gpu=self.docker.gpu_support,
            container=container,
            variables=variables,
        )

    @staticmethod
    def from_spec(spec: Any) -> Environment:
        """The environment that a run was given: an EnvironmentSpec, or its JSON."""
        if isinstance(spec, dict):
            spec = from_json(EnvironmentSpec, spec)
        made = Environment(spec.name)
        made._frameworks, made._variables = spec.frameworks, dict(spec.variables)
        made.python.user_managed_dependencies = spec.user_managed
        made.python.interpreter_path = spec.interpreter or "python"
        python = [f"python={spec.python}"] if spec.python else []
        made.python.conda_dependencies = CondaDependencies(
            _underlying_structure={
                "dependencies": [*python, *spec.conda, {"pip": list(spec.pip)}],
                "channels": list(spec.channels),
            }
        )
        made.docker.gpu_support = spec.gpu
        if spec.container is not None:
            made.docker.enabled = True
            made.docker.base_image = spec.container.image
            made.docker.base_image_registry.address = spec.container.registry or None
            made.docker.arguments = list(spec.container.arguments)
            made.docker.shm_size = spec.container.shm_size or None
        return made

    def to_definition(self) -> dict[str, Any]:
        """Plain JSON, without name and version: equal definitions are the same environment."""
        return {
            "frameworks": [{"name": f.name, "version": f.version} for f in self._frameworks],
            "python": {
                "userManagedDependencies": self.python.user_managed_dependencies,
                "interpreterPath": self.python.interpreter_path,
                "condaDependenciesFile": self.python.conda_dependencies_file,
                "condaDependencies": self.python.conda_dependencies.as_dict(),
            },
            "docker": {
                "enabled": self.docker.enabled,
                "baseImage": self.docker.base_image,
                "baseDockerfile": self.docker.base_dockerfile,
                "baseImageRegistry": {"address": self.docker.base_image_registry.address},
                "arguments": list(self.docker.arguments),
                "shmSize": self.docker.shm_size,
                "sharedVolumes": self.docker.shared_volumes,
                "gpuSupport": self.docker.gpu_support,
            },
            "environmentVariables": dict(self._variables),
        }

    @staticmethod
    def from_definition(name: str, definition: dict[str, Any], version: Optional[str] = None) -> Environment:
        made = Environment(name)
        python, docker = definition.get("python", {}), definition.get("docker", {})
        made.python.user_managed_dependencies = python.get("userManagedDependencies", False)
        made.python.interpreter_path = python.get("interpreterPath", "python")
        made.python.conda_dependencies_file = python.get("condaDependenciesFile")
        if python.get("condaDependencies"):
            made.python.conda_dependencies = CondaDependencies(_underlying_structure=python["condaDependencies"])
        made.docker.enabled = docker.get("enabled", False)
        made.docker.base_image = docker.get("baseImage")
        made.docker.base_dockerfile = docker.get("baseDockerfile")
        made.docker.base_image_registry.address = (docker.get("baseImageRegistry") or {}).get("address")
        made.docker.arguments = docker.get("arguments") or []
        made.docker.shm_size = docker.get("shmSize")
        made.docker.shared_volumes = docker.get("sharedVolumes", True)
        made.docker.gpu_support = docker.get("gpuSupport", False)
        made._variables = dict(definition.get("environmentVariables") or {})
        made._frameworks = tuple(Framework(f["name"], f["version"]) for f in definition.get("frameworks", ()))
        made.version = version
        return made

    def __repr__(self) -> str:
        import json

        return json.dumps({"name": self.name, "version": self.version, **self.to_definition()}, indent=4, default=str)

    @staticmethod
    def _curated(name: str, quiet: bool = False) -> Environment:
        offer = curated.offer(name, quiet=quiet)
        made = Environment(name)
        made._frameworks = offer.frameworks
        made.docker.gpu_support = offer.gpu
        made.version = "1"
        return made

    @staticmethod
    def _registered(view: dict[str, Any]) -> Environment:
        return Environment.from_definition(view["name"], view["definition"], str(view["version"]))

    def _dependencies(self, source_directory: Optional[Path]) -> CondaDependencies:
        file = self.python.conda_dependencies_file
        if file is None:
            return self.python.conda_dependencies
        return CondaDependencies((source_directory or Path()) / file)

    def _container(self) -> Optional[Container]:
        docker = self.docker
        if docker.base_dockerfile or docker.build_context:
            raise EnvironmentException(
                f"environment {self.name!r} asks to build an image, which is not available in this version",
                hint="build it with podman or docker and name it in environment.docker.base_image",
            )
        if not docker.base_image:
            return None
        if _V1_BASE_IMAGE.fullmatch(docker.base_image):
            validation.log.info("image %s holds only a Python: an isolated environment is used", docker.base_image)
            return None
        registry = docker.base_image_registry
        for argument in ("username", "password"):
            no_effect.told(docker, f"base_image_registry.{argument}", getattr(registry, argument) or None, _SIGN_IN)
        return Container(
            image=docker.base_image,
            registry=registry.address or "",
            arguments=tuple(str(argument) for argument in docker.arguments),
            shm_size=docker.shm_size or "",
        )

    def _interpreter(self, container: Optional[Container]) -> str:
        # 'python' on the submitter's PATH is rarely the Python that imported this library
        ours = self.python.interpreter_path == "python" and container is None
        return sys.executable if ours else self.python.interpreter_path
