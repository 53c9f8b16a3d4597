"""The sections of an environment: `environment.python`, `environment.docker` and `environment.spark`."""

from __future__ import annotations

from typing import Any, Optional

from runyard.sdk.azureml import no_effect
from runyard.sdk.core.sections import Section
from runyard.sdk.environment.conda_dependencies import CondaDependencies

_NO_SPARK = "there is no Spark cluster; add pyspark to pip_packages to run Spark inside the script"


class ContainerRegistry(Section):
    """Address and credentials of a registry of container images."""

    def __init__(self) -> None:
        self.address: Optional[str] = None
        self.username: Optional[str] = None
        self.password: Optional[str] = None
        self._freeze_names()

    def __repr__(self) -> str:  # without the password: environments are printed, stored and logged
        return f"ContainerRegistry(address={self.address!r}, username={self.username!r})"


class PythonSection(Section):
    """The interpreter and the packages of an environment."""

    _types = {
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
        self._freeze_names()

    def _to_definition(self) -> dict[str, Any]:
        return {
            "userManagedDependencies": self.user_managed_dependencies,
            "interpreterPath": self.interpreter_path,
            "condaDependenciesFile": self.conda_dependencies_file,
            "condaDependencies": self.conda_dependencies.as_dict(),
        }

    def _load(self, definition: dict[str, Any]) -> None:
        self.user_managed_dependencies = definition.get("userManagedDependencies", False)
        self.interpreter_path = definition.get("interpreterPath", "python")
        self.conda_dependencies_file = definition.get("condaDependenciesFile")
        if definition.get("condaDependencies"):
            self.conda_dependencies = CondaDependencies(_underlying_structure=definition["condaDependencies"])


class DockerSection(Section):
    """The container image of an environment; without a ``base_image``, runs get an isolated Python."""

    _types = {
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
        self._freeze_names()

    def _to_definition(self) -> dict[str, Any]:
        return {
            "enabled": self.enabled,
            "baseImage": self.base_image,
            "baseDockerfile": self.base_dockerfile,
            "baseImageRegistry": {"address": self.base_image_registry.address},
            "arguments": list(self.arguments),
            "shmSize": self.shm_size,
            "sharedVolumes": self.shared_volumes,
            "gpuSupport": self.gpu_support,
        }

    def _load(self, definition: dict[str, Any]) -> None:
        self.enabled = definition.get("enabled", False)
        self.base_image = definition.get("baseImage")
        self.base_dockerfile = definition.get("baseDockerfile")
        self.base_image_registry.address = (definition.get("baseImageRegistry") or {}).get("address")
        self.arguments = definition.get("arguments") or []
        self.shm_size = definition.get("shmSize")
        self.shared_volumes = definition.get("sharedVolumes", True)
        self.gpu_support = definition.get("gpuSupport", False)


class SparkSection(Section):
    """Accepted for scripts that set it; has no effect."""

    def __init__(self) -> None:
        self.repositories: list[str] = []
        self.packages: list[Any] = []
        self.precache_packages = True
        self._freeze_names()

    def _report_no_effect(self) -> None:
        for setting in ("repositories", "packages"):
            no_effect.warn_ignored(self, setting, getattr(self, setting) or None, _NO_SPARK)
        no_effect.warn_ignored(self, "precache_packages", None if self.precache_packages else False, _NO_SPARK)
