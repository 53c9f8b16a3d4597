"""Arguments and variables of a run, compared as text."""

from pathlib import Path

from runyard.launch.argv import expand, script_argv
from runyard.launch.variables import clean_environment, process_tag, run_variables
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.folder import RunFolder
from runyard.spec.run import RunSpec

BASE = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/ada",
    "LANG": "C.UTF-8",
    "VIRTUAL_ENV": "/yard/venv",
    "PYTHONPATH": "/yard/src",
    "PYTHONHOME": "/yard",
    "CONDA_PREFIX": "/opt/conda",
    "RUNYARD_RUN_ID": "the run that started this yard",
    "AZUREML_RUN_ID": "the same",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
}

GOLDEN = """\
train.py --lr 0.1 $DATA
AZUREML_ARM_PROJECT_NAME=digits
AZUREML_ARM_RESOURCEGROUP=local
AZUREML_ARM_SUBSCRIPTION=local
AZUREML_ARM_WORKSPACE_NAME=runyard
AZUREML_RUN_ID=digits_1
AZUREML_RUN_TOKEN=not-a-secret
AZUREML_SERVICE_ENDPOINT=unix:///home/ada/.runyard/yard.sock
CUDA_VISIBLE_DEVICES=1,3
DATA=/data
OMP_NUM_THREADS=2
PYTHONPATH=/home/ada/.runyard/kit:/mine
PYTHONUNBUFFERED=1
RUNYARD_HOME=/home/ada/.runyard
RUNYARD_PROCESS_TAG=digits_1@36332d646836
RUNYARD_RANK=0
RUNYARD_RUN_FOLDER=/home/ada/.runyard/runs/digits_1
RUNYARD_RUN_ID=digits_1
RUNYARD_YARD_PYTHON=/yard/venv/bin/python
"""


def make_variables(spec=None, **overrides):
    home = Path("/home/ada/.runyard")
    defaults = {
        "run_id": "digits_1",
        "experiment": "digits",
        "spec": spec or RunSpec("train.py"),
        "folder": RunFolder(home / "runs/digits_1"),
        "node_package": home / "kit",
        "home": home,
        "gpus": None,
        "yard_python": "/yard/venv/bin/python",
        "socket": str(home / "yard.sock"),
    }
    return run_variables(**{**defaults, **overrides})


def test_arguments_and_variables_as_text():
    spec = RunSpec(
        "train.py",
        arguments=("--lr", "0.1", "$DATA"),
        environment=EnvironmentSpec(variables={"OMP_NUM_THREADS": "1", "DATA": "/data"}),
        environment_variables={"OMP_NUM_THREADS": "2", "PYTHONPATH": "/mine", "RUNYARD_RUN_ID": "forged"},
    )
    argv, variables = script_argv(spec), make_variables(spec, gpus=(1, 3))
    text = " ".join(argv) + "\n" + "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))
    assert text == GOLDEN


def test_gpus_are_hidden_from_a_run_without_gpus():
    assert make_variables(gpus=())["CUDA_VISIBLE_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in make_variables(gpus=None)


def test_path_is_only_set_if_the_user_set_it():
    assert "PATH" not in make_variables()
    assert make_variables(RunSpec("train.py", environment_variables={"PATH": "/opt/tool"}))["PATH"] == "/opt/tool"


def test_variables_of_the_yards_python_and_of_other_runs_are_removed():
    assert clean_environment(BASE) == {"PATH": "/usr/bin:/bin", "HOME": "/home/ada", "LANG": "C.UTF-8"}


def test_a_script_name_that_starts_with_a_dash_is_not_an_option():
    assert script_argv(RunSpec("-c.py", arguments=("-x",))) == ("./-c.py", "-x")


def test_the_same_run_id_in_two_homes_has_two_tags():
    assert process_tag("r", RunFolder(Path("/a/runs/r"))) != process_tag("r", RunFolder(Path("/b/runs/r")))


def test_variables_are_expanded_once_and_unknown_ones_stay():
    variables = {"A": "1", "B_2": "$A", "AZUREML_DATAREFERENCE_x": "/data"}
    arguments = (
        "$A",
        "${A}",
        "x$A/y",
        "$B_2",
        "$NONE",
        "${NONE}",
        "$",
        "$$",
        "a$",
        "5$",
        "${",
        "$AZUREML_DATAREFERENCE_x/t",
    )
    expected = ("1", "1", "x1/y", "$A", "$NONE", "${NONE}", "$", "$$", "a$", "5$", "${", "/data/t")
    assert expand(arguments, variables) == expected
