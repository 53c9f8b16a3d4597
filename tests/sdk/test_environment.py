from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.errors import EnvironmentException, UserErrorException
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment
from runyard.sdk.environment.sections import ContainerRegistry
from runyard.sdk.training.run_configuration import DEFAULT_CPU_IMAGE, DEFAULT_GPU_IMAGE
from runyard.spec.environment import EnvironmentSpec, Framework
from runyard.spec.json import to_json


class FakeYard:
    """Keeps registered environments as the yard does: the same definition again keeps its version."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}

    @property
    def connection(self) -> FakeYard:
        return self

    def post(self, path: str, body: Any) -> Any:
        assert path == "/api/environments/registered"
        body = json.loads(json.dumps(body))
        versions = self.kept.setdefault(body["name"], [])
        if not versions or versions[-1] != body["definition"]:
            versions.append(body["definition"])
        return self._view(body["name"], len(versions))

    def get(self, path: str, **query: Any) -> Any:
        if path == "/api/environments/registered":
            return [self._view(name, len(versions)) for name, versions in self.kept.items()]
        name = path.rpartition("/")[2]
        if name not in self.kept:
            raise UserErrorException(f"no environment {name!r} is registered")
        return self._view(name, int(query.get("version") or len(self.kept[name])))

    def _view(self, name: str, version: int) -> Any:
        return {"name": name, "version": str(version), "definition": self.kept[name][version - 1]}


def rich_environment(name: str = "mine") -> Environment:
    environment = Environment(name)
    environment.python.conda_dependencies = CondaDependencies.create(
        pip_packages=["numpy"], conda_packages=["scipy"], python_version="3.11"
    )
    environment.environment_variables = {"A": "1"}
    environment.docker.base_image = "team/image"
    environment.docker.shm_size = "2g"
    environment.docker.gpu_support = True
    return environment


def test_a_new_environment_is_isolated_and_empty() -> None:
    assert Environment("mine").to_spec() == EnvironmentSpec(name="mine")


def test_settings_are_in_the_specification() -> None:
    spec = rich_environment().to_spec()
    assert (spec.python, spec.pip, spec.conda, spec.channels) == ("3.11", ("numpy",), ("scipy",), ("conda-forge",))
    assert spec.variables == {"A": "1"}
    assert spec.gpu
    assert spec.container is not None
    assert (spec.container.image, spec.container.shm_size) == ("team/image", "2g")


def test_user_managed_uses_this_or_the_named_interpreter() -> None:
    """B5.27."""
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    assert environment.to_spec().interpreter == sys.executable
    environment.python.interpreter_path = "/opt/python"
    assert environment.to_spec().interpreter == "/opt/python"
    assert environment.to_spec().user_managed


@pytest.mark.parametrize("image", [DEFAULT_CPU_IMAGE, DEFAULT_GPU_IMAGE, "host.example/azureml/base-gpu:0.2.1"])
def test_a_base_image_of_the_sdk_v1_is_an_isolated_environment(image: str) -> None:
    environment = Environment("mine")
    environment.docker.enabled = True
    environment.docker.base_image = image
    assert environment.to_spec().container is None


def test_building_an_image_is_refused() -> None:
    environment = Environment("mine")
    environment.docker.base_dockerfile = "FROM scratch"
    with pytest.raises(EnvironmentException, match="requires building an image"):
        environment.to_spec()


def test_credentials_are_neither_stored_nor_printed(caplog: pytest.LogCaptureFixture) -> None:
    environment = rich_environment()
    environment.docker.base_image_registry.username = "me"
    environment.docker.base_image_registry.password = "s3cret"
    assert "s3cret" not in json.dumps(to_json(environment.to_spec()))
    assert "s3cret" not in repr(environment) + repr(environment.docker.base_image_registry)
    assert "does not store registry credentials" in caplog.text


def test_repr_is_json() -> None:
    """B5.29."""
    printed = json.loads(repr(rich_environment()))
    assert (printed["name"], printed["version"]) == ("mine", None)
    assert printed["python"]["condaDependencies"]["dependencies"] == ["python=3.11", "scipy", {"pip": ["numpy"]}]


def default_and_one_more() -> Environment:
    environment = Environment("added")
    environment.python.conda_dependencies.add_pip_package("six")
    return environment


@pytest.mark.parametrize(
    "environment", [Environment("plain"), rich_environment(), default_and_one_more()], ids=["plain", "rich", "added"]
)
def test_definition_and_specification_round_trip(environment: Environment) -> None:
    through = json.loads(json.dumps(environment.to_definition()))
    again = Environment.from_definition(environment.name, through)
    assert again.to_spec() == environment.to_spec()
    assert again.to_definition() == environment.to_definition()
    spec = environment.to_spec()
    assert Environment.from_spec(spec).to_spec() == spec
    assert Environment.from_spec(to_json(spec)).to_spec() == spec


def test_a_clone_is_independent_and_not_registered() -> None:
    """B5.29."""
    environment = rich_environment()
    environment.version = "3"
    clone = environment.clone("copy")
    clone.python.conda_dependencies.add_pip_package("pandas")
    clone.environment_variables["B"] = "2"
    assert (clone.name, clone.version) == ("copy", None)
    assert environment.python.conda_dependencies.pip_packages == ["numpy"]
    assert environment.environment_variables == {"A": "1"}


def test_registering_gives_versions_and_the_same_definition_keeps_its_own() -> None:
    """B5.29."""
    yard, environment = FakeYard(), rich_environment()
    assert environment.version is None
    assert environment.register(yard).version == "1"
    assert environment.register(workspace=yard).version == "1"
    environment.python.conda_dependencies.add_pip_package("pandas")
    assert environment.register(yard).version == "2"
    assert Environment.get(yard, "mine").python.conda_dependencies.pip_packages == ["numpy", "pandas"]
    first = Environment.get(workspace=yard, name="mine", version="1")
    assert (first.version, first.python.conda_dependencies.pip_packages) == ("1", ["numpy"])


def test_an_unregistered_name_raises_the_yards_error() -> None:
    with pytest.raises(UserErrorException, match="no environment 'absent' is registered"):
        Environment.get(FakeYard(), "absent")
    with pytest.raises(UserErrorException, match="version must be a number"):
        Environment.get(FakeYard(), "absent", version="newest")
    with pytest.raises(UserErrorException, match="no label 'prod'"):
        Environment.get(FakeYard(), "absent", label="prod")


def test_the_list_contains_registered_and_curated_environments() -> None:
    """B5.29."""
    yard = FakeYard()
    rich_environment().register(yard)
    listed = Environment.list(workspace=yard)
    assert listed["mine"].version == "1"
    assert "AzureML-Minimal" in listed


@pytest.mark.parametrize(
    ("name", "frameworks", "gpu"),
    [
        ("AzureML-Minimal", (), False),
        ("AzureML-TensorFlow-2.1-GPU", (Framework("tensorflow", "2.21.0"),), True),
        ("AzureML-PyTorch-1.4-GPU", (Framework("pytorch", "2.13.0"),), True),
        ("AzureML-PyTorch-1.6-CPU", (Framework("pytorch", "2.13.0"),), False),
        ("AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu", (Framework("pytorch", "2.13.0"),), True),
        ("AzureML-sklearn-0.24-ubuntu18.04-py37-cpu", (Framework("scikit-learn", "1.9.1"),), False),
    ],
)
def test_curated_names_return_current_frameworks(
    name: str, frameworks: Any, gpu: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """B5.29."""
    environment = Environment.get(FakeYard(), name)
    spec = environment.clone("mine").to_spec()
    assert (spec.frameworks, spec.gpu) == (frameworks, gpu)
    assert bool(frameworks) == ("is replaced by" in caplog.text)


def test_unknown_curated_names_are_refused() -> None:
    with pytest.raises(UserErrorException, match=r"no curated environment 'AzureML-Chainer-5\.1\.0-GPU'"):
        Environment.get(FakeYard(), "AzureML-Chainer-5.1.0-GPU")
    with pytest.raises(UserErrorException, match="belongs to a curated environment of the yard"):
        Environment("AzureML-Mine").register(FakeYard())


def test_environments_from_files(tmp_path: Path) -> None:
    """B5.29."""
    (tmp_path / "conda.yml").write_text("dependencies:\n- python=3.12\n- pip:\n  - numpy\n")
    (tmp_path / "requirements.txt").write_text("pandas\n--pre\n")
    conda = Environment.from_conda_specification(name="c", file_path=tmp_path / "conda.yml").to_spec()
    assert (conda.name, conda.python, conda.pip) == ("c", "3.12", ("numpy",))
    pip = Environment.from_pip_requirements("p", str(tmp_path / "requirements.txt")).to_spec()
    assert (pip.python, pip.pip) == (None, ("--pre", "pandas"))
    registry = ContainerRegistry()
    registry.address = "images.example"
    image = Environment.from_docker_image("i", "team/image", container_registry=registry).to_spec()
    assert image.user_managed
    assert image.interpreter == "python"


def test_a_conda_file_of_the_project_is_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "env.yml").write_text("dependencies:\n- pip:\n  - numpy\n")
    environment = Environment("e")
    environment.python.conda_dependencies_file = "env.yml"
    assert environment.to_spec(tmp_path).pip == ("numpy",)
    with pytest.raises(UserErrorException, match="no conda file"):
        environment.to_spec(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a/b"])
def test_an_environment_needs_a_name(name: Any) -> None:
    with pytest.raises(UserErrorException, match="the name of an environment must be text"):
        Environment(name)


def test_wrong_types_are_named() -> None:
    environment: Any = Environment("e")
    with pytest.raises(UserErrorException, match=r"PythonSection.conda_dependencies must be CondaDependencies"):
        environment.python.conda_dependencies = ["numpy"]
    with pytest.raises(UserErrorException, match="environment_variables must be a dict"):
        environment.environment_variables = "A=1"
    with pytest.raises(UserErrorException, match=r"PythonSection.user_managed_dependencies must be bool"):
        environment.python.user_managed_dependencies = "yes"
