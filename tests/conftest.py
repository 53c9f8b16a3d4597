"""Shared fixtures: a real yard with a real socket in a temporary home folder."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from runyard.errors import RunyardException
from runyard.sdk.azureml import no_effect
from support import a_home, logged_errors

_numbers = itertools.count(1)

# A shell without job control starts background jobs with SIGINT ignored, and their children inherit that. The commands
# that the tests interrupt must receive it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Horovod's wheel takes minutes to build, so all home folders of the tests share one cache.
os.environ.setdefault("RUNYARD_WHEEL_CACHE", str(Path.home() / ".cache" / "runyard" / "wheels"))


@pytest.fixture(autouse=True)
def _reset_process_state() -> Iterator[None]:
    """Importing `azureml` changes the format of errors, and some notes are logged once per process."""
    yield
    RunyardException.format_as_v1 = False
    no_effect._logged.clear()
    no_effect._function_notes.clear()


@pytest.fixture(scope="session")
def shared_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder
        errors = logged_errors(folder)
    assert errors == []


@pytest.fixture
def home(shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a yard that all tests of this process share; `tests/yard` has one per test."""
    monkeypatch.setenv("RUNYARD_HOME", str(shared_home))
    return shared_home


@pytest.fixture
def workspace(home: Path) -> Workspace:
    return Workspace()


@pytest.fixture
def experiment(workspace: Workspace) -> Experiment:
    """An experiment that no other test uses."""
    return Experiment(workspace, f"digits-{next(_numbers)}")


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """`project(train='print(1)')` creates a folder with train.py."""

    def create(**scripts: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return folder

    return create


# folders and files whose tests start many processes: they are marked real, so that the quick tests stay quick
_REAL_FOLDERS = {"bench", "cli", "mlflow_client", "stress", "yard"}
_REAL_FILES = ("test_docs_blocks", "test_gang_", "test_ssh_remote_agent")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of slow tests: MLflow's client alone takes seconds in each process."""
    if config.getoption("markexpr") == "not real" and collection_path.name in _REAL_FOLDERS:
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _REAL_FOLDERS & set(item.path.parts) or item.path.name.startswith(_REAL_FILES):
            item.add_marker(pytest.mark.real)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List skipped tests with their reasons."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"skipped: {report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
