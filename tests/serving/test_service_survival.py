"""Services keep running when the yard is killed, and are restarted with it when their processes are gone."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import RunyardException
from service_support import (
    Client,
    Load,
    deploy_service,
    kill_all,
    scoring_config,
    service_view,
    supervisor_pid,
    unique_name,
)
from support import a_home, eventually, is_alive, stop_yard, yard_pid

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("services that survive")]


@pytest.fixture(scope="module")
def own_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate yard, because these tests kill it."""
    monkeypatch.setenv("RUNYARD_HOME", str(own_home))
    return own_home


def test_a_service_survives_a_killed_yard_and_is_adopted_by_the_next(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    supervisor = supervisor_pid(service)
    with Load(service, 2, "x") as load:
        load.wait_for_more(20)
        stop_yard(workspace.home, signal.SIGKILL)
        load.wait_for_more(50)
        service.update_deployment_state()  # starts the next yard
        assert service.state == "Healthy"
        load.wait_for_more(20)
    assert load.results.keys() == {'200 "here"'}
    assert supervisor_pid(service) == supervisor
    service.update(inference_config=scoring_config(tmp_path / "new", "def init(): pass\ndef run(text): return 'new'\n"))
    service.wait_for_deployment()
    assert service.run("x") == "new"
    service.delete()
    assert supervisor is not None
    eventually(lambda: not is_alive(supervisor), "the supervisor has ended")


def test_a_service_without_processes_is_restarted_at_the_same_address(workspace: Workspace, tmp_path: Path) -> None:
    """Covers a reboot of the machine."""
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n", workers=2)
    stop_yard(workspace.home, signal.SIGKILL)
    kill_all(service)
    before = service.scoring_uri
    service.update_deployment_state()
    assert service.scoring_uri == before
    eventually(lambda: is_healthy(service), "the service is healthy", 60)
    assert service.run("x") == "here"


def test_a_killed_supervisor_is_replaced_by_the_yard(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    supervisor = supervisor_pid(service)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: supervisor_pid(service) not in (None, supervisor), "there is a new supervisor", 60)
    eventually(lambda: is_healthy(service), "the service is healthy", 60)
    assert service.run("x") == "here"
    assert yard_pid(workspace.home) is not None


def test_an_interrupted_deployment_is_finished_by_the_next_yard(workspace: Workspace, tmp_path: Path) -> None:
    flag = tmp_path / "go"
    slow = f"import os, time\ndef init():\n    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
    code = scoring_config(tmp_path / "code", slow + "def run(text): return 'done'\n")
    service = Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration())
    eventually(lambda: supervisor_pid(service) is not None, "the supervisor has started", 60)
    stop_yard(workspace.home, signal.SIGKILL)
    flag.touch()
    service.wait_for_deployment()
    assert service.run("x") == "done"
    assert Client(service).request("x").headers["x-runyard-version"] == "1"


def test_workers_keep_their_folder_when_the_next_yard_finishes_the_deployment(
    workspace: Workspace, tmp_path: Path
) -> None:
    flag = tmp_path / "go"
    slow = "import os, time\ndef init():\n    open('marker', 'w').close()\n"
    slow += f"    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
    code = scoring_config(tmp_path / "code", slow + "def run(text): return os.path.exists('marker')\n")
    service = Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration())
    work = workspace.home / "services" / service.name / "versions" / "1" / "work"
    eventually((work / "marker").exists, "the worker has started", 60)
    stop_yard(workspace.home, signal.SIGKILL)
    service.update_deployment_state()  # starts the next yard
    flag.touch()
    service.wait_for_deployment()
    assert service.run("x") is True


def test_a_yard_killed_before_recording_success_does_not_fail_the_deployment(
    workspace: Workspace, tmp_path: Path
) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    supervisor = supervisor_pid(service)
    stop_yard(workspace.home, signal.SIGKILL)
    with sqlite3.connect(workspace.home / "yard.db") as database:  # the last row was not written
        database.execute("update service_versions set state = 'Transitioning' where name = ?", (service.name,))
    database.close()
    service.update_deployment_state()
    service.wait_for_deployment()
    assert (service.state, service_view(service)["error"]) == ("Healthy", "")
    assert [version["state"] for version in service_view(service)["versions"]] == ["Healthy"]
    assert supervisor_pid(service) == supervisor


def test_a_deployment_whose_state_cannot_be_written_leaves_the_name_free(workspace: Workspace, tmp_path: Path) -> None:
    name = unique_name()
    folder = workspace.home / "services" / name
    Webservice.list(workspace)  # starts the yard, which creates the services folder
    obstacle = folder / "wanted.json" / "obstacle"
    obstacle.mkdir(parents=True)
    code = scoring_config(tmp_path / "code", "def init(): pass\ndef run(text): return 'here'\n")
    with pytest.raises(RunyardException):
        Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    assert name not in [service.name for service in Webservice.list(workspace)]
    shutil.rmtree(folder, ignore_errors=True)
    service = Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run("x") == "here"


def is_healthy(service: Webservice) -> bool:
    service.update_deployment_state()
    return service.state == "Healthy"
