from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from runyard.errors import UserErrorException
from runyard.sdk.environment.conda_dependencies import CondaDependencies
from runyard.sdk.environment.environment import Environment


def spec_of(dependencies: CondaDependencies) -> Any:
    environment = Environment("e")
    environment.python.conda_dependencies = dependencies
    return environment.to_spec()


def test_the_default_is_written_as_in_the_sdk_v1() -> None:
    """B5.28."""
    for default in (CondaDependencies(), CondaDependencies.create()):
        assert default.as_dict() == {
            "name": "project_environment",
            "dependencies": ["python=3.10.18", {"pip": ["azureml-defaults"]}],
            "channels": ["conda-forge"],
        }
        assert (spec_of(default).python, spec_of(default).pip) == (None, ())


def test_serialized_text_is_equivalent_yaml() -> None:
    """B5.28."""
    dependencies = CondaDependencies.create(
        pip_packages=["numpy==2.0", "a @ https://example.org/a.whl", 'b; python_version < "3.9"', "no", "#odd: x"],
        conda_packages=["scipy>=1"],
    )
    dependencies.set_pip_option("--pre")
    assert yaml.safe_load(dependencies.serialize_to_string()) == dependencies.as_dict()
    assert dependencies.serialize_to_string().startswith("name: project_environment\ndependencies:\n- python=3.10.18\n")


def test_save_to_file_returns_the_path_that_can_be_read_again(tmp_path: Path) -> None:
    """B5.28."""
    dependencies = CondaDependencies.create(pip_packages=["numpy"], python_version="3.12")
    assert dependencies.save_to_file(base_directory=str(tmp_path), conda_file_path="sub/myenv.yml") == "sub/myenv.yml"
    again = CondaDependencies(tmp_path / "sub" / "myenv.yml")
    assert again.as_dict() == dependencies.as_dict()
    with pytest.raises(UserErrorException, match="is a folder"):
        dependencies.save(tmp_path)


def test_a_default_python_version_is_not_requested_even_after_a_file(tmp_path: Path) -> None:
    CondaDependencies.create(pip_packages=["numpy"]).save(tmp_path / "env.yml")
    assert spec_of(CondaDependencies(tmp_path / "env.yml")).python is None
    (tmp_path / "old.yml").write_text("dependencies: ['python=3.6.2']\n")
    assert spec_of(CondaDependencies(tmp_path / "old.yml")).python is None


@pytest.mark.parametrize(
    "choose",
    [
        lambda: CondaDependencies.create(python_version="3.11"),
        lambda: CondaDependencies.create(conda_packages=["python=3.11"]),
        lambda: CondaDependencies.create(conda_packages=["python==3.11"]),
    ],
)
def test_a_chosen_python_version_is_requested(choose: Any) -> None:
    assert spec_of(choose()).python == "3.11"
    assert choose().get_python_version() == "3.11"
    dependencies = CondaDependencies()
    dependencies.set_python_version("3.12")
    assert spec_of(dependencies).python == "3.12"


def test_packages_are_replaced_and_removed_by_name() -> None:
    """B5.28."""
    dependencies = CondaDependencies.create(pip_packages=["numpy==1.26", "pandas"], conda_packages=["scipy=1.0"])
    dependencies.add_pip_package("NumPy>=2")
    dependencies.add_conda_package("scipy=1.1")
    assert (dependencies.pip_packages, dependencies.conda_packages) == (
        ["NumPy>=2", "pandas"],
        ["python=3.10.18", "scipy=1.1"],
    )
    dependencies.remove_pip_package("pandas")
    dependencies.remove_conda_package("scipy=1.1")
    assert (dependencies.pip_packages, dependencies.conda_packages) == (["NumPy>=2"], ["python=3.10.18"])


def test_channels_and_options_are_stored() -> None:
    dependencies = CondaDependencies.create(
        conda_packages=["scipy"], pip_packages=["numpy"], pip_indexurl="https://a.example"
    )
    dependencies.add_channel("bioconda")
    dependencies.add_channel("bioconda")
    assert dependencies.conda_channels == ["conda-forge", "bioconda"]
    dependencies.remove_channel("conda-forge")
    spec = spec_of(dependencies)
    assert (spec.channels, spec.pip) == (("bioconda",), ("--index-url https://a.example", "numpy"))
    dependencies.set_pip_index_url("https://b.example")
    assert dependencies.pip_options == ["--index-url https://b.example"]
    dependencies.remove_pip_option("--index-url")
    assert dependencies.pip_options == []


def test_options_for_the_public_index_are_skipped() -> None:
    dependencies = CondaDependencies.create(pip_packages=["numpy"])
    dependencies.set_pip_option("--extra-index-url https://pypi.python.org/simple")
    dependencies.set_pip_option("--find-links https://pypi.python.org/simple/index.html")
    assert spec_of(dependencies).pip == ("numpy",)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda dependencies: dependencies.add_pip_package("-e ."),
        lambda dependencies: dependencies.add_pip_package("--pre"),
        lambda dependencies: dependencies.add_pip_package(""),
        lambda dependencies: dependencies.add_conda_package(3),
        lambda dependencies: dependencies.set_python_version(3.11),
        lambda dependencies: dependencies.set_python_version("three"),
        lambda dependencies: CondaDependencies.create(pip_packages="numpy"),
        lambda dependencies: CondaDependencies.create(conda_packages=[1]),
        lambda dependencies: dependencies.add_tensorflow_conda_package("tpu"),
    ],
)
def test_an_invalid_package_is_refused(wrong: Any) -> None:
    """B5.28."""
    with pytest.raises(UserErrorException):
        wrong(CondaDependencies())


def test_the_tensorflow_version_is_current() -> None:
    """B5.28."""
    dependencies = CondaDependencies.create(pip_packages=[])
    dependencies.add_tensorflow_conda_package()
    assert dependencies.pip_packages == ["tensorflow==2.21.0"]
    dependencies.add_tensorflow_pip_package(core_type="gpu", version="2.20")
    assert dependencies.pip_packages == ["tensorflow[and-cuda]==2.20.0"]
    with pytest.raises(UserErrorException, match=r"TensorFlow 1.13 is not available; supported: 2.16.1"):
        dependencies.add_tensorflow_conda_package(version="1.13")


def test_requirements_can_be_merged_and_set() -> None:
    assert CondaDependencies.merge_requirements(["a>=1", "b", "a<2"]) == ["a>=1,<2", "b"]
    dependencies = CondaDependencies()
    dependencies.set_pip_requirements(["numpy"])
    assert spec_of(dependencies).pip == ("numpy",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- just\n- a list\n", "is not a conda file"),
        ("dependencies: numpy\n", "is not a conda file"),
        ("dependencies:\n- 3\n", "3 is not a dependency"),
        ("dependencies: [\n", "cannot read"),
    ],
)
def test_an_invalid_conda_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text(text)
    with pytest.raises(UserErrorException, match=message) as caught:
        CondaDependencies(tmp_path / "bad.yml")
    assert "bad.yml" in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="no conda file"):
        CondaDependencies(tmp_path / "absent.yml")


def test_a_missing_yaml_parser_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env.yml").write_text("dependencies: []\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UserErrorException, match="PyYAML is not installed in this Python") as caught:
        CondaDependencies(tmp_path / "env.yml")
    assert "pip install pyyaml" in caught.value.hint
