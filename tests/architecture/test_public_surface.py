"""What others rely on: the public names, the version, what an import costs, and what the project's files may say."""

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
    RunConfiguration RunDetails SKLearn ScriptRunConfig SlurmCompute SshCompute TensorFlow Tensorboard
    TensorflowConfiguration Workspace export_to_tensorboard
"""

HEAVY = """
    alembic asyncio email fastapi http httptools logging numpy obstore orjson packaging pydantic rattler rich sqlalchemy
    ssl starlette typer typing uv uvicorn yaml
"""
COSTLY_ONLY = "asyncio email http logging ssl typing"  # of the standard library: slow to import, and no more than that


def test_the_public_names_are_these() -> None:
    assert sorted(runyard.__all__) == sorted(PUBLIC.split())


def test_every_public_name_resolves() -> None:
    for name in runyard.__all__:
        assert getattr(runyard, name) is not None
    assert dir(runyard) == sorted(runyard.__all__)


def test_the_version_is_the_projects() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "([^"]+)"$', project, re.MULTILINE)
    assert found
    assert found[1] == runyard.__version__


def test_importing_runyard_imports_nothing_else_that_matters() -> None:
    assert loaded_by("import runyard") & set(HEAVY.split()) == set()


def test_logging_in_a_script_needs_none_of_the_engine() -> None:
    loaded = loaded_by("from runyard import Run; Run.get_context()")
    assert loaded & (set(HEAVY.split()) - set(COSTLY_ONLY.split())) == set()


def test_a_script_that_logs_a_number_waits_for_no_import_but_ours(tmp_path: Path) -> None:
    logging = "from runyard import Run; Run.get_context().log('loss', 0.5)"
    loaded = loaded_by(logging, RUNYARD_RUN_ID="run_1", RUNYARD_RUN_FOLDER=str(tmp_path))
    assert list((tmp_path / "journal").glob("*.seg"))
    assert loaded & {*HEAVY.split(), "dataclasses", "enum", "json", "pathlib", "re", "threading"} == set()


def loaded_by(statement: str, **variables: str) -> set[str]:
    """The top-level modules that a statement brings into a Python that has nothing but the standard library on top."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", **variables},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {name.split(".")[0] for name in done.stdout.decode().split()}


def test_every_module_of_the_kit_imports_with_the_standard_library_alone(tmp_path: Path) -> None:
    """As in a user's Python that has no packages: isolated, without `site`, the kit's own copy on the path."""
    folder = create_node_package(tmp_path)
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py")
    ]
    assert len(modules) > 50
    code = "import sys, importlib; sys.path.insert(0, sys.argv[1]); [importlib.import_module(m) for m in sys.argv[2:]]"
    command = [sys.executable, "-I", "-S", "-c", code, str(folder), *modules]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_the_kit_is_all_that_enters_users_pythons() -> None:
    """What the import contract names as standard library only is what is copied."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = project[project.index("what enters users' Pythons") :]
    sources = contract[: contract.index("]")]
    named = {name.removeprefix("runyard.") for name in re.findall(r'"(runyard\.\w+)"', sources)}
    copied = {Path(part).with_suffix("").name for part in PACKAGE_FILES} - {"__init__", "py"}
    assert named <= copied


def test_files_name_no_machine_and_no_registry() -> None:
    """Nobody else has this folder, this index or that host."""
    wrong = re.compile(
        r"https?://[\w.-]*(artifactory|nexus|jfrog|\.internal|pypi\.org|pythonhosted|npmjs)|\bgh[ps]_\w{20}|/opt/(pypi|wheels)\b"
    )
    here = f"{ROOT}/"
    found = []
    for path in project_files():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in wrong.finditer(text)]
        found += [f"{path.relative_to(ROOT)}: {here}"] if here in text else []
    assert found == []


def project_files() -> Iterator[Path]:
    yield from (*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".gitignore")
    for folder in ("src", "distributions", "tests", "docs", "examples", "scripts", "bench", "ui", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            made = {"__pycache__", "node_modules"} & set(path.parts)
            if path.is_file() and not made and path != Path(__file__):
                yield path
