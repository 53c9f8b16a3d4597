"""What a run asks for becomes requirement lines, and every decision is said."""

from __future__ import annotations

import pytest

from runyard.environments import requirements
from runyard.environments.requirements import Wanted
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec, Framework

TORCH = Framework("pytorch", "2.13.0")
TENSORFLOW = Framework("tensorflow", "2.21.0")


def wanted(*, gpu: bool = False, conda_answers: bool = False, **spec: object) -> Wanted:
    return requirements.wanted(EnvironmentSpec(**spec), gpu=gpu, conda_answers=conda_answers)


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
    assert set(wanted(frameworks=(framework,), gpu=gpu).requirements) == set(lines)


def test_the_users_own_numpy_is_the_one_that_comes_with_torch() -> None:
    assert set(wanted(frameworks=(TORCH,), pip=("numpy<2",)).requirements) == {"torch==2.13.0", "numpy<2"}


def test_the_users_pin_of_a_framework_wins_with_a_warning() -> None:
    found = wanted(frameworks=(TENSORFLOW,), pip=("tensorflow==2.20.0", "six"))
    assert found.requirements == ("tensorflow==2.20.0", "six")
    assert "tensorflow==2.20.0 from your packages is used instead of tensorflow-cpu==2.21.0" in found.warnings


def test_a_framework_named_without_a_version_keeps_the_estimators_version() -> None:
    found = wanted(frameworks=(TENSORFLOW,), pip=("TensorFlow",))
    assert found.requirements == ("tensorflow-cpu==2.21.0",)
    assert found.warnings == ()


@pytest.mark.parametrize(
    "package",
    ["azureml-defaults", "azureml_core==1.0.41", "azureml-train-core", "azureml-sdk[notebooks]", "AzureML-Widgets",
     "azureml-dataprep[pandas,fuse]", "azureml-contrib-tensorboard", "azureml-mlflow", "runyard"],
)  # fmt: skip
def test_packages_of_the_real_sdk_are_taken_out_and_said_so(package: str) -> None:
    found = wanted(pip=(package, "six"))
    assert found.requirements == ("six",)
    assert any("provided by Runyard" in note for note in found.notes)


def test_packages_of_the_real_sdk_are_taken_out_of_the_conda_list_too() -> None:
    assert wanted(conda=("azureml-defaults",)).requirements == ()


def test_conda_packages_come_from_pypi_when_no_channel_answers_and_each_is_said() -> None:
    found = wanted(conda=("numpy=1.26", "pytorch", "cudatoolkit=10.0", "pip", "python=3.10.18", "scikit-learn>=1.2"))
    assert found.requirements == ("numpy==1.26.*", "torch", "scikit-learn>=1.2")
    assert found.python == "3.10.18"
    assert found.conda == ()
    assert "conda package numpy=1.26: taken from PyPI as numpy==1.26.*" in found.notes
    assert any(note.startswith("conda package cudatoolkit=10.0: left out") for note in found.notes)


def test_conda_packages_are_left_for_a_channel_that_answers() -> None:
    found = wanted(conda=("numpy=1.26", "python=3.10"), pip=("six",), conda_answers=True)
    assert (found.conda, found.requirements, found.python) == (("numpy=1.26",), ("six",), "3.10")


def test_a_python_and_pip_alone_do_not_ask_for_conda() -> None:
    assert not requirements.wants_conda(EnvironmentSpec(conda=("python=3.11", "pip=24", "azureml-defaults")))
    assert requirements.wants_conda(EnvironmentSpec(conda=("python=3.11", "numpy")))


def test_comments_and_index_options_are_read_as_in_a_requirements_file() -> None:
    found = wanted(
        pip=("# mine", "six  # small", "--extra-index-url https://example.org/simple", "-f /wheels", "--pre")
    )
    assert found.requirements == ("six",)
    assert found.options == (
        "--extra-index-url", "https://example.org/simple", "--find-links", "/wheels", "--prerelease", "allow",
    )  # fmt: skip


@pytest.mark.parametrize("line", ["-r other.txt", "-e .", "--frobnicate", "./folder", "/code/mypackage", "six=1.0"])
def test_a_line_that_cannot_be_followed_is_refused_by_name(line: str) -> None:
    with pytest.raises(EnvironmentException) as caught:
        wanted(pip=(line,))
    assert line in caught.value.message
    assert caught.value.hint


def test_the_retired_name_tensorflow_gpu_becomes_tensorflow() -> None:
    assert wanted(pip=("tensorflow-gpu>=2.1",)).requirements == ("tensorflow>=2.1",)


def test_the_framework_of_an_estimator_follows_use_gpu_and_listed_packages_follow_the_machine() -> None:
    estimator, plain = EnvironmentSpec(frameworks=(TORCH,)), EnvironmentSpec(pip=("torch",))
    asked = EnvironmentSpec(frameworks=(TORCH,), gpu=True)
    assert [requirements.wants_gpu_packages(s, has_gpu=True) for s in (estimator, plain, asked)] == [False, True, True]
    assert not any(requirements.wants_gpu_packages(s, has_gpu=False) for s in (estimator, plain, asked))
