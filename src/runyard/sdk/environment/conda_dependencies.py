"""The packages of an environment, in the form of a conda file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.environment.requirements_file import is_default_index
from runyard.sdk.training.framework_versions import TENSORFLOW, package_name, select_version


class _DefaultVersion(str):
    """A Python version that a conda file has to name although the user did not choose one."""


DEFAULT_PYTHON_VERSION: str = _DefaultVersion("3.10.18")
# Releases of the SDK v1 wrote these into every file, so they are not the user's choice either.
_WRITTEN_BY_V1 = ("3.6.2", "3.8.13", "3.10.18")
_IMPLIED_PIP = "azureml-defaults"
_SAFE_SCALAR = re.compile(r"[A-Za-z_][A-Za-z0-9_.=<>!~,\[\]/+*-]*")
_YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


class CondaDependencies:
    """Conda packages, pip packages and channels.

    Args:
        conda_dependencies_file_path: A conda YAML file to read; without it, only the defaults are set.
    """

    # no packages by default: the yard adds what a run needs
    DEFAULT_NUMBER_OF_CONDA_PACKAGES = 0
    DEFAULT_NUMBER_OF_PIP_PACKAGES = 0

    def __init__(
        self,
        conda_dependencies_file_path: Any = None,
        _underlying_structure: Optional[dict[str, Any]] = None,
    ) -> None:
        self._name = "project_environment"
        self._python: Optional[str] = DEFAULT_PYTHON_VERSION
        self._conda: list[str] = []
        self._pip: list[str] = [_IMPLIED_PIP]
        self._implied = {_IMPLIED_PIP}
        self._pip_options: list[str] = []
        self._channels: list[str] = ["conda-forge"]
        if conda_dependencies_file_path is not None:
            file = Path(
                validation.path("conda_dependencies_file_path", conda_dependencies_file_path, error=UserErrorException)
                or ""
            )
            self._load(_parse(file), str(file))
        elif _underlying_structure is not None:
            self._load(_underlying_structure, "the conda specification")
            self._implied = {_IMPLIED_PIP}  # a stored environment lists the default next to the user's packages

    @staticmethod
    def create(
        pip_indexurl: Optional[str] = None,
        pip_packages: Optional[Iterable[str]] = None,
        conda_packages: Optional[Iterable[str]] = None,
        python_version: str = DEFAULT_PYTHON_VERSION,
        pin_sdk_version: bool = True,
    ) -> CondaDependencies:
        """Create from lists of packages.

        Args:
            pip_indexurl: Package index for pip.
            pip_packages: Requirements such as ``"numpy>=1.26"``.
            conda_packages: Conda packages such as ``"cudatoolkit=11"``.
            python_version: The Python to install.
            pin_sdk_version: Has no effect.
        """
        pinned = None if pin_sdk_version else False
        no_effect.warn_ignored("CondaDependencies.create", "pin_sdk_version", pinned, "every run contains Runyard")
        dependencies = CondaDependencies()
        dependencies._python = python_version
        if pip_packages is not None:
            dependencies._pip, dependencies._implied = [], set()
            for package in validation.packages("pip_packages", pip_packages, error=UserErrorException):
                dependencies.add_pip_package(package)
        for package in validation.packages("conda_packages", conda_packages, error=UserErrorException):
            dependencies.add_conda_package(package)
        if pip_indexurl:
            dependencies.set_pip_index_url(pip_indexurl)
        return dependencies

    @staticmethod
    def merge_requirements(requirements: Iterable[str]) -> list[str]:
        """Return one line per package with its version ranges joined: ``a>=1``, ``a<2`` become ``a>=1,<2``."""
        merged: dict[str, tuple[str, list[str]]] = {}
        for line in requirements:
            match = re.match(r"\s*([A-Za-z0-9._-]+(?:\[[^\]]*\])?)\s*(.*)", line)
            if not match:
                continue
            _, ranges = merged.setdefault(package_name(line), (match[1], []))
            if match[2].strip() and match[2].strip() not in ranges:
                ranges.append(match[2].strip())
        return [name + ",".join(ranges) for name, ranges in merged.values()]

    @property
    def conda_channels(self) -> list[str]:
        return list(self._channels)

    @property
    def conda_packages(self) -> list[str]:
        """The conda packages, including Python."""
        return [*([f"python={self._python}"] if self._python else []), *self._conda]

    @property
    def pip_packages(self) -> list[str]:
        return list(self._pip)

    @property
    def pip_options(self) -> list[str]:
        return list(self._pip_options)

    def get_python_version(self) -> Optional[str]:
        return str(self._python) if self._python else None

    def set_python_version(self, version: str) -> None:
        if not isinstance(version, str) or not re.fullmatch(r"[<>=!~]*\d[\w.*,<>=!~]*", version):
            raise validation.invalid("the Python version", version, "text such as '3.11'", error=UserErrorException)
        self._python = version

    def add_channel(self, channel: str) -> None:
        if channel not in self._channels:
            self._channels.append(_checked_name("channel", channel))

    def remove_channel(self, channel: str) -> None:
        self._channels = [c for c in self._channels if c != channel]

    def add_conda_package(self, conda_package: str) -> None:
        package = _checked_name("conda_package", conda_package)
        if package_name(package) == "python":
            self.set_python_version(package[len("python") :].strip().lstrip("=").strip() or DEFAULT_PYTHON_VERSION)
            return
        _replace(self._conda, package)

    def remove_conda_package(self, conda_package: str) -> None:
        self._conda = [p for p in self._conda if p != conda_package]

    def add_pip_package(self, pip_package: str) -> None:
        package = _checked_name("pip_package", pip_package)
        self._implied.discard(package)
        _replace(self._pip, package)

    def remove_pip_package(self, pip_package: str) -> None:
        self._pip = [p for p in self._pip if p != pip_package and package_name(p) != pip_package]

    def set_pip_requirements(self, pip_requirements: Iterable[str]) -> None:
        """Replace the pip packages."""
        packages = validation.packages("pip_requirements", pip_requirements, error=UserErrorException)
        self._pip, self._implied = packages, set()

    def set_pip_option(self, pip_option: str) -> None:
        if pip_option not in self._pip_options:
            self._pip_options.append(pip_option)

    def remove_pip_option(self, pip_option: str) -> None:
        self._pip_options = [
            o for o in self._pip_options if o.split()[0].split("=")[0] != pip_option and o != pip_option
        ]

    def set_pip_index_url(self, index_url: str) -> None:
        self.remove_pip_option("--index-url")
        self.set_pip_option(index_url if index_url.startswith("--index-url") else f"--index-url {index_url}")

    def add_tensorflow_conda_package(self, core_type: str = "cpu", version: Optional[str] = None) -> None:
        """Add a current TensorFlow from PyPI, where its releases are published."""
        self.add_tensorflow_pip_package(core_type, version)

    def add_tensorflow_pip_package(self, core_type: str = "cpu", version: Optional[str] = None) -> None:
        if core_type not in ("cpu", "gpu"):
            raise validation.invalid("core_type", core_type, "'cpu' or 'gpu'", error=UserErrorException)
        release = select_version(TENSORFLOW, version, error=UserErrorException)
        self.add_pip_package(f"tensorflow{'[and-cuda]' if core_type == 'gpu' else ''}=={release}")

    def add_cntk_package(self, core_type: str = "cpu") -> None:
        raise UserErrorException(
            "CNTK has had no release since 2019, and the yard offers no Python that can install it",
            hint="its authors recommend PyTorch and ONNX",
        )

    def get_default_number_of_packages(self) -> tuple[int, int]:
        """Return the number of conda and pip packages that every environment contains."""
        return self.DEFAULT_NUMBER_OF_CONDA_PACKAGES, self.DEFAULT_NUMBER_OF_PIP_PACKAGES

    @staticmethod
    def sdk_origin_url() -> str:
        """Not available: a yard has no package index."""
        raise UserErrorException(
            "packages come from the index that pip is configured with on the yard's machine",
            hint="`pip config list` shows it",
        )

    def as_dict(self) -> dict[str, Any]:
        pip = [*self._pip_options, *self._pip]
        return {
            "name": self._name,
            "dependencies": [*self.conda_packages, *([{"pip": pip}] if pip else [])],
            "channels": list(self._channels),
        }

    def serialize_to_string(self) -> str:
        lines = [f"name: {_scalar(self._name)}", "dependencies:"]
        lines += [f"- {_scalar(package)}" for package in self.conda_packages]
        pip = [*self._pip_options, *self._pip]
        lines += ["- pip:", *(f"  - {_scalar(package)}" for package in pip)] if pip else []
        lines += ["channels:", *(f"- {_scalar(channel)}" for channel in self._channels)] if self._channels else []
        return "\n".join(lines) + "\n"

    def save(self, path: Any = None) -> str:
        target = Path(validation.path("path", path, error=UserErrorException) or "conda_dependencies.yml")
        if target.is_dir():
            raise UserErrorException(f"{str(target)!r} is a folder", hint="pass the path of the file to write")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.serialize_to_string(), encoding="utf-8")
        except OSError as e:
            raise UserErrorException(f"cannot write the conda file {str(target)!r}: {e.strerror}") from e
        return target.as_posix()

    def save_to_file(self, base_directory: Any, conda_file_path: Any = None) -> str:
        """Write the conda file.

        Returns:
            Its path relative to ``base_directory``.
        """
        name = validation.path("conda_file_path", conda_file_path, error=UserErrorException) or "conda_dependencies.yml"
        self.save(Path(validation.path("base_directory", base_directory, error=UserErrorException) or ".") / name)
        return Path(name).as_posix()

    @property
    def _explicit_python(self) -> Optional[str]:
        """The Python version if the user chose one."""
        return None if self._python is None or isinstance(self._python, _DefaultVersion) else self._python

    @property
    def _explicit_pip_lines(self) -> list[str]:
        """Lines of a requirements file: the options that differ from pip's defaults, then the user's packages."""
        options = [option for option in self._pip_options if not is_default_index(option)]
        return [*options, *(package for package in self._pip if package not in self._implied)]

    def _add_pip_lines(self, lines: Iterable[str]) -> None:
        """Add lines of a requirements file. Two lines for one package may differ in their markers, so both stay."""
        for line in (line.strip() for line in lines):
            if line.startswith("-"):
                self.set_pip_option(line)
            elif line not in self._pip:
                self._pip.append(line)

    def _load(self, structure: Any, source: str) -> None:
        """Replace everything, including the defaults, by the content of a conda file."""
        dependencies = structure.get("dependencies", []) if isinstance(structure, dict) else None
        if not isinstance(dependencies, list):
            raise UserErrorException(f"{source} is not a conda file", hint="it needs a list under 'dependencies:'")
        self._name = str(structure.get("name") or self._name)
        self._channels = [str(channel) for channel in structure.get("channels") or []]
        self._python, self._pip, self._implied = None, [], set()
        for item in dependencies:
            if isinstance(item, str):
                self.add_conda_package(item)
            elif isinstance(item, dict) and isinstance(item.get("pip"), list):
                self._add_pip_lines(map(str, item["pip"]))
            else:
                raise UserErrorException(
                    f"{source}: {item!r} is not a dependency",
                    hint="a dependency is a package such as 'numpy=1.26', or a list of packages under 'pip:'",
                )
        if self.get_python_version() in _WRITTEN_BY_V1:
            self._python = _DefaultVersion(self._python)
        if self._pip == [_IMPLIED_PIP]:  # the form in which a default environment is stored
            self._implied = {_IMPLIED_PIP}


def _parse(file: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise UserErrorException(
            f"cannot read the conda file {str(file)!r}: PyYAML is not installed in this Python",
            hint="pip install pyyaml, or build it with CondaDependencies.create(...)",
        ) from None
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UserErrorException(f"no conda file {str(file)!r}", hint="check the path") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise UserErrorException(f"cannot read the conda file {str(file)!r}: {e}") from e


def _checked_name(parameter: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise validation.invalid(parameter, value, "one name, as text", error=UserErrorException)
    if value.lstrip().startswith("-"):
        raise UserErrorException(
            f"{value!r} is an option, not a package", hint="pip options are set with set_pip_option"
        )
    return value.strip()


def _replace(packages: list[str], package: str) -> None:
    """Replace the entry of the same package, or append."""
    name = package_name(package)
    for index, entry in enumerate(packages):
        if name and package_name(entry) == name:
            packages[index] = package
            return
    packages.append(package)


def _scalar(text: str) -> str:
    if _SAFE_SCALAR.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return str(text)
    import json

    return json.dumps(str(text), ensure_ascii=False)
