"""The `azureml` names: every one leads to its own in Runyard, at no cost, from an installation and inside of a job."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment, Run, Workspace
from runyard.environments.node_package import create_node_package
from runyard.sdk.azureml.module_finder import VERSION, runyard_name
from runyard.sdk.azureml.names import LOCATIONS, MODULES
from support import pythons, with_this_python

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_the_table_resolves(module: str) -> None:
    imported = importlib.import_module(module)
    assert imported.__all__ == MODULES[module].split()
    for name in imported.__all__:
        target = runyard_name(name)
        assert target is not None, f"{module}.{name} is not in the table"
        assert getattr(imported, name) is getattr(importlib.import_module(target[0]), target[1])


def test_urllib_is_complete_after_the_import_of_azureml_core() -> None:
    code = (
        "import sys, azureml.core, urllib\n"
        "assert 'urllib.request' not in sys.modules\n"
        "print(urllib.request.urlopen.__name__, urllib.parse.quote('a b'), hasattr(urllib, 'nothing'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("urlopen a%20b False\n", "")


def test_every_runyard_module_in_the_table_is_used() -> None:
    named = {name for names in MODULES.values() for name in names.split()}
    homes = [word.partition("=")[0] for names in LOCATIONS.values() for word in names.split()]
    assert sorted(set(homes) - named) == []
    assert len(homes) == len(set(homes))


def test_one_class_under_several_names_is_one_class() -> None:
    """B2.7: the exception that create-or-attach cells catch is the same object by both of its names."""
    import azureml.core.compute_target
    import azureml.exceptions

    assert azureml.core.compute_target.ComputeTargetException is azureml.exceptions.ComputeTargetException


def test_all_names_of_a_module_can_be_star_imported() -> None:
    names: dict[str, object] = {}
    exec("from azureml.train.estimator import *\nfrom azureml.train.hyperdrive import *", names)
    assert {"Estimator", "choice", "BanditPolicy", "PrimaryMetricGoal"} <= set(names)


def test_the_version_contains_both_versions() -> None:
    import azureml.core

    assert azureml.core.VERSION == VERSION
    assert VERSION.startswith("1.61.0+runyard.")


def test_missing_names_raise_a_runyard_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'azureml.core.nothing': Runyard provides a part"):
        importlib.import_module("azureml.core.nothing")
    with pytest.raises(ImportError, match=r"cannot import name 'Nothing' from 'azureml\.core'"):
        exec("from azureml.core import Nothing", {})
    with pytest.raises(ModuleNotFoundError, match=r"azureml\.core\.run\.Run"):
        importlib.import_module("azureml.core.run.Run")


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ("import azureml.automl", ModuleNotFoundError, "No module named 'azureml.automl': it belongs to automated ML"),
        ("import azureml.opendatasets", ModuleNotFoundError, "Instead: upload the files to a datastore once"),
        ("from azureml.pipeline.core import Pipeline", ModuleNotFoundError, "Instead: submit each step as a run"),
        ("from azureml.train.automl import AutoMLConfig", ModuleNotFoundError, "scripts with HyperDriveConfig"),
        (
            "from azureml.core import PrivateEndPoint",
            ImportError,
            "cannot import name 'PrivateEndPoint' from 'azureml.core': it belongs",
        ),
        ("from azureml.core.compute import AksCompute", ImportError, "Instead: deploy on this machine"),
        ("import azureml.core\nazureml.core.PrivateEndPoint", AttributeError, "a yard accepts only its owner"),
        (
            "from azureml.data import OutputFileDatasetConfig",
            ImportError,
            "'azureml.data': it belongs to outputs that Azure converted to datasets. Instead: datastore.path(",
        ),
        (
            "from azureml.core.model import ModelPackage",
            ImportError,
            "'azureml.core.model': it belongs to images that Azure built of models. Instead: Model.deploy(…)",
        ),
        ("import azureml.contrib.notebook", ModuleNotFoundError, "nbconvert"),
        ("import azureml.contrib.nothing", ModuleNotFoundError, "azureml.contrib.services or azureml.contrib.tens"),
    ],
)
def test_refused_names_raise_the_reason_and_an_alternative(line: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        exec(line, {})


def test_notebooks_catch_the_errors_that_are_raised(tmp_path: Path) -> None:
    from azureml.core.run import _OfflineRun
    from azureml.exceptions import AuthenticationException, ProjectSystemException

    (tmp_path / "config.json").write_text("{")
    for kind in (ProjectSystemException, AuthenticationException):
        with pytest.raises(kind, match="cannot be read"):
            Workspace.from_config(str(tmp_path / "config.json"))
    assert isinstance(Run.get_context(), _OfflineRun)


def test_hasattr_works_for_refused_names() -> None:
    import azureml.core

    assert not hasattr(azureml.core, "PrivateEndPoint")


def test_azureml_imports_load_no_more_than_runyard_imports(tmp_path: Path) -> None:
    folder = create_node_package(tmp_path)
    new = loaded_by("from runyard import Run", folder)
    old = loaded_by("from azureml.core import Run", folder)
    answering = {name for name in old if name.split(".")[0] == "azureml"} | {
        "runyard.sdk.azureml",
        "runyard.sdk.azureml.module_finder",
        "runyard.sdk.azureml.names",
    }
    # what finds modules is of Python itself, and loaded by `site` in any other Python than this bare one
    finding = loaded_by("import importlib.machinery", folder)
    assert old - new - answering - finding <= {"urllib"}  # an empty package; its modules are loaded on first use


def test_the_names_work_from_the_node_package(tmp_path: Path) -> None:
    done = bare_python(
        create_node_package(tmp_path),
        "import azureml\nfrom azureml.core import Run\nfrom azureml.core.run import Run as Same\n"
        "from azureml.core.script_run_config import ScriptRunConfig\n"
        "print(Run is Same, azureml.core.Run is Run, type(Run.get_context()).__name__)",
    )
    assert done.stdout.split() == ["True", "True", "OfflineRun"], done.stderr


def test_every_name_is_in_the_node_package_on_the_oldest_python(tmp_path: Path) -> None:
    code = (
        "import importlib\nfrom runyard.sdk.azureml.names import MODULES\n"
        "for module, names in MODULES.items():\n"
        "    for name in names.split():\n        getattr(importlib.import_module(module), name)\nprint('all')"
    )
    done = bare_python(create_node_package(tmp_path), code, pythons()[0].path)
    assert done.stdout == "all\n", done.stderr


def test_a_script_with_azureml_imports_logs_to_its_run(experiment: Experiment, project: Callable[..., Path]) -> None:
    """B9.56: the run is known from the environment that its agent gave it, and is one object in a process."""
    code = """
        import os
        from azureml.core import Run
        from azureml.core.run import Run as Same
        run = Run.get_context()
        run.log('one', 1)
        assert run is Same.get_context() and run is Run.get_submitted_run()
        names = 'RUN_ID ARM_SUBSCRIPTION ARM_RESOURCEGROUP ARM_WORKSPACE_NAME ARM_PROJECT_NAME RUN_TOKEN'
        missing = [n for n in [*names.split(), 'SERVICE_ENDPOINT'] if not os.environ.get('AZUREML_' + n)]
        run.log('missing', len(missing))
        assert os.environ['AZUREML_RUN_ID'] == run.id
        assert os.environ['AZUREML_ARM_PROJECT_NAME'] == run.experiment.name
    """
    lines = [line[8:] for line in code.splitlines()]
    run = experiment.submit(with_this_python(project(train="\n".join(lines))))
    run.wait_for_completion()
    assert run.get_metrics() == {"one": 1, "missing": 0}


def test_node_package_modules_compile_on_python_3_9() -> None:
    for name in ("azureml/module_finder", "azureml/names", "azureml/no_effect", "run/run"):
        source = (ROOT / "src" / "runyard" / "sdk" / f"{name}.py").read_text(encoding="utf-8")
        assert ast.parse(source, feature_version=(3, 9)).body


def loaded_by(statement: str, folder: Path) -> set[str]:
    done = bare_python(
        folder, f"import sys; before = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before))"
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def bare_python(folder: Path, code: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """As in a user's Python that has no packages: without `site`, the kit alone on the path."""
    environment = {"PYTHONPATH": str(folder), "PATH": os.defpath}
    return subprocess.run([python, "-S", "-c", code], env=environment, capture_output=True, text=True)
