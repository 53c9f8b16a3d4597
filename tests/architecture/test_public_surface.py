"""The public names, the version, the cost of imports, and the content of the project's files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import runyard
from runyard.environments.node_package import PACKAGE_FILES, create_node_package

ROOT = Path(__file__).parents[2]

PUBLIC = """
    __version__
    AciWebservice AksWebservice ContainerImage Image InferenceConfig LocalWebservice Webservice
    AmlCompute ComputeTarget CondaDependencies DataReference Dataset Datastore Environment Estimator Experiment Gloo
    Model Mpi MpiConfiguration Nccl ParameterServer PyTorch PyTorchConfiguration RemoteCompute Resources Run
    RunConfiguration RunDetails SKLearn ScriptRunConfig Secret SlurmCompute SshCompute TensorFlow Tensorboard
    TensorflowConfiguration Workspace export_to_tensorboard
"""

HEAVY = """
    alembic asyncio email fastapi http httptools logging numpy obstore orjson packaging pydantic rattler rich sqlalchemy
    ssl starlette typer typing uv uvicorn yaml
"""
SLOW_ONLY = "asyncio email http logging ssl typing"  # standard library modules that are only slow to import


def test_the_public_names() -> None:
    assert sorted(runyard.__all__) == sorted(PUBLIC.split())


def test_every_public_name_resolves() -> None:
    for name in runyard.__all__:
        assert getattr(runyard, name) is not None
    assert dir(runyard) == sorted(runyard.__all__)


def test_the_version_equals_that_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^version = "([^"]+)"$', project, re.MULTILINE)
    assert match
    assert match[1] == runyard.__version__


def test_importing_runyard_imports_no_heavy_module() -> None:
    assert loaded_by("import runyard") & set(HEAVY.split()) == set()


def test_logging_in_a_script_imports_no_heavy_module() -> None:
    loaded = loaded_by("from runyard import Run; Run.get_context()")
    assert loaded & (set(HEAVY.split()) - set(SLOW_ONLY.split())) == set()


def test_logging_a_number_imports_no_slow_module(tmp_path: Path) -> None:
    logging = "from runyard import Run; Run.get_context().log('loss', 0.5)"
    loaded = loaded_by(logging, RUNYARD_RUN_ID="run_1", RUNYARD_RUN_FOLDER=str(tmp_path))
    assert list((tmp_path / "journal").glob("*.seg"))
    assert loaded & {*HEAVY.split(), "dataclasses", "enum", "json", "pathlib", "re", "threading"} == set()


# each imports the framework that it extends, in the environment of a user who imports it
FRAMEWORKS = {f"runyard/integrations/{name}.py" for name in ("accelerate", "lightning", "optuna", "transformers")}


def loaded_by(statement: str, **variables: str) -> set[str]:
    """The top-level modules that a statement imports in a Python with only the standard library."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    process = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", **variables},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {name.split(".")[0] for name in process.stdout.decode().split()}


def test_the_node_package_imports_with_the_standard_library_only(tmp_path: Path) -> None:
    """As in a user's Python without packages: isolated, without `site`, with the copied package on the path."""
    folder = create_node_package(tmp_path)
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py") and path.relative_to(folder).as_posix() not in FRAMEWORKS
    ]
    assert len(modules) > 50
    code = "import sys, importlib; sys.path.insert(0, sys.argv[1]); [importlib.import_module(m) for m in sys.argv[2:]]"
    command = [sys.executable, "-I", "-S", "-c", code, str(folder), *modules]
    process = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert process.returncode == 0, process.stderr.decode()


def test_the_node_package_contains_all_modules_of_the_import_contract() -> None:
    """The modules that the contract restricts to the standard library are copied."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = project[project.index("what enters users' Pythons") :]
    sources = contract[: contract.index("]")]
    contract_modules = {name.removeprefix("runyard.") for name in re.findall(r'"(runyard\.\w+)"', sources)}
    copied = {Path(part).with_suffix("").name for part in PACKAGE_FILES} - {"__init__", "py"}
    assert contract_modules <= copied


def test_files_contain_no_local_path_and_no_registry() -> None:
    """Other users do not have this folder, this index or this host."""
    forbidden = re.compile(
        r"https?://[\w.-]*(artifactory|nexus|jfrog|\.internal|pypi\.org|pythonhosted|npmjs)|\bgh[ps]_\w{20}|/opt/(pypi|wheels)\b"
    )
    checkout = f"{ROOT}/"
    problems = []
    for path in project_files():
        text = path.read_bytes().decode("utf-8", "replace")
        problems += [f"{path.relative_to(ROOT)}: {match[0]}" for match in forbidden.finditer(text)]
        problems += [f"{path.relative_to(ROOT)}: {checkout}"] if checkout in text else []
    assert problems == []


def project_files() -> Iterator[Path]:
    yield from (*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".gitignore")
    for folder in ("src", "distributions", "tests", "docs", "examples", "scripts", "bench", "ui", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            is_generated = {"__pycache__", "node_modules"} & set(path.parts)
            if path.is_file() and not is_generated and path != Path(__file__):
                yield path
