"""Specifications are translated to requirement lines, with a note for each decision."""

from __future__ import annotations

import pytest

from runyard.environments import requirements
from runyard.environments.requirements import InstallPlan
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

TORCH = Framework("pytorch", "2.13.0")
TENSORFLOW = Framework("tensorflow", "2.21.0")


def plan(*, gpu: bool = False, use_conda: bool = False, **spec: object) -> InstallPlan:
    return requirements.install_plan(EnvironmentSpec(**spec), gpu=gpu, use_conda=use_conda)


@pytest.mark.parametrize(
    ("framework", "gpu", "lines"),
    [
        (TORCH, False, ("torch==2.13.0", "numpy")),
        (TORCH, True, ("torch==2.13.0", "numpy")),
        (TENSORFLOW, False, ("tensorflow-cpu==2.21.0",)),
        (TENSORFLOW, True, ("tensorflow[and-cuda]==2.21.0",)),
        (Framework("scikit-learn", "1.7.2"), False, ("scikit-learn==1.7.2",)),
    ],
)
def test_a_framework_becomes_its_pinned_package(framework: Framework, gpu: bool, lines: tuple[str, ...]) -> None:
    assert set(plan(frameworks=(framework,), gpu=gpu).requirements) == set(lines)


def test_a_numpy_of_the_user_replaces_the_one_for_torch() -> None:
    assert set(plan(frameworks=(TORCH,), pip=("numpy<2",)).requirements) == {"torch==2.13.0", "numpy<2"}


def test_a_framework_pinned_by_the_user_wins_with_a_warning() -> None:
    result = plan(frameworks=(TENSORFLOW,), pip=("tensorflow==2.20.0", "six"))
    assert result.requirements == ("tensorflow==2.20.0", "six")
    assert "tensorflow==2.20.0 from your packages is used instead of tensorflow-cpu==2.21.0" in result.warnings


def test_a_framework_without_a_version_gets_the_estimators_version() -> None:
    result = plan(frameworks=(TENSORFLOW,), pip=("TensorFlow",))
    assert result.requirements == ("tensorflow-cpu==2.21.0",)
    assert result.warnings == ()


@pytest.mark.parametrize(
    "package",
    ["azureml-defaults", "azureml_core==1.0.41", "azureml-train-core", "azureml-sdk[notebooks]", "AzureML-Widgets",
     "azureml-dataprep[pandas,fuse]", "azureml-contrib-tensorboard", "azureml-mlflow", "runyard"],
)  # fmt: skip
def test_packages_of_the_azure_sdk_are_removed_with_a_note(package: str) -> None:
    result = plan(pip=(package, "six"))
    assert result.requirements == ("six",)
    assert any("provided by Runyard" in note for note in result.notes)


def test_packages_of_the_azure_sdk_are_removed_from_the_conda_list() -> None:
    assert plan(conda=("azureml-defaults",)).requirements == ()


def test_conda_packages_are_translated_to_pypi_with_notes() -> None:
    result = plan(conda=("numpy=1.26", "pytorch", "cudatoolkit=10.0", "pip", "python=3.10.18", "scikit-learn>=1.2"))
    assert result.requirements == ("numpy==1.26.*", "torch", "scikit-learn>=1.2")
    assert result.python == "3.10.18"
    assert result.conda == ()
    assert "conda package numpy=1.26: installed from PyPI as numpy==1.26.*" in result.notes
    assert any(note.startswith("conda package cudatoolkit=10.0: not installed") for note in result.notes)


def test_conda_packages_are_kept_for_a_channel() -> None:
    result = plan(conda=("numpy=1.26", "python=3.10"), pip=("six",), use_conda=True)
    assert (result.conda, result.requirements, result.python) == (("numpy=1.26",), ("six",), "3.10")


def test_python_and_pip_alone_do_not_need_conda() -> None:
    assert not requirements.needs_conda(EnvironmentSpec(conda=("python=3.11", "pip=24", "azureml-defaults")))
    assert requirements.needs_conda(EnvironmentSpec(conda=("python=3.11", "numpy")))


def test_comments_and_index_options_are_read_as_in_a_requirements_file() -> None:
    result = plan(pip=("# mine", "six  # small", "--extra-index-url https://example.org/simple", "-f /wheels", "--pre"))
    assert result.requirements == ("six",)
    assert result.options == (
        "--extra-index-url", "https://example.org/simple", "--find-links", "/wheels", "--prerelease", "allow",
    )  # fmt: skip


@pytest.mark.parametrize("line", ["-r other.txt", "-e .", "--frobnicate", "./folder", "/code/mypackage", "six=1.0"])
def test_an_unsupported_line_is_refused_with_a_hint(line: str) -> None:
    with pytest.raises(EnvironmentException) as caught:
        plan(pip=(line,))
    assert line in caught.value.message
    assert caught.value.hint


def test_the_retired_name_tensorflow_gpu_becomes_tensorflow() -> None:
    assert plan(pip=("tensorflow-gpu>=2.1",)).requirements == ("tensorflow>=2.1",)


def test_use_gpu_decides_for_frameworks_and_the_machine_for_packages() -> None:
    estimator, plain = EnvironmentSpec(frameworks=(TORCH,)), EnvironmentSpec(pip=("torch",))
    with_gpu = EnvironmentSpec(frameworks=(TORCH,), gpu=True)
    specs = (estimator, plain, with_gpu)
    assert [requirements.uses_gpu_packages(spec, has_gpu=True) for spec in specs] == [False, True, True]
    assert not any(requirements.uses_gpu_packages(spec, has_gpu=False) for spec in specs)
