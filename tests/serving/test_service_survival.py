"""Services need no yard: they go on when it is killed, and come back with it when all is gone."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import RunyardException
from service_support import Client, Load, a_name, a_script, deployed, service_view
from support import a_home, eventually, is_alive, lock_holder, stop_yard, yard_pid

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("services that survive")]


@pytest.fixture(scope="module")
def own_home() -> Iterator[Path]:
    with a_home() as folder:
        yield folder


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A yard of these tests alone: they kill it."""
    monkeypatch.setenv("RUNYARD_HOME", str(own_home))
    return own_home


def keeper_of(service: Webservice) -> int | None:
    return lock_holder(service.workspace.home / "services" / service.name / "keeper.lock")


def test_a_service_goes_on_when_its_yard_is_killed_and_the_next_one_adopts_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    keeper = keeper_of(service)
    with Load(service, 2, "x") as load:
        load.until_more(20)
        stop_yard(workspace.home, signal.SIGKILL)
        load.until_more(50)
        service.update_deployment_state()  # starts the next yard
        assert service.state == "Healthy"
        load.until_more(20)
    assert load.seen.keys() == {'200 "here"'}
    assert keeper_of(service) == keeper
    service.update(inference_config=a_script(tmp_path / "new", "def init(): pass\ndef run(text): return 'new'\n"))
    service.wait_for_deployment()
    assert service.run("x") == "new"
    service.delete()
    assert keeper is not None
    eventually(lambda: not is_alive(keeper), "nothing is left of it")


def test_a_service_whose_processes_are_all_gone_comes_back_at_the_same_place(
    workspace: Workspace, tmp_path: Path
) -> None:
    """As after the machine was switched off."""
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n", workers=2)
    workers = [one["pid"] for one in service_view(service)["versions"][0]["workers"]]
    keeper = keeper_of(service)
    assert keeper is not None
    stop_yard(workspace.home, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    for pid in workers:  # they end with their keeper
        eventually(lambda pid=pid: not is_alive(pid), "no worker is left behind")
    before = service.scoring_uri
    service.update_deployment_state()
    assert service.scoring_uri == before
    eventually(lambda: comes_back(service), "it serves again", 60)
    assert service.run("x") == "here"


def test_a_keeper_that_is_killed_is_replaced_by_the_yard(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    keeper = keeper_of(service)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: keeper_of(service) not in (None, keeper), "another keeper", 60)
    eventually(lambda: comes_back(service), "it serves again", 60)
    assert service.run("x") == "here"
    assert yard_pid(workspace.home) is not None


def test_a_deployment_that_the_yard_did_not_live_to_finish_is_finished_by_the_next(
    workspace: Workspace, tmp_path: Path
) -> None:
    flag = tmp_path / "go"
    slow = f"import os, time\ndef init():\n    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
    code = a_script(tmp_path / "code", slow + "def run(text): return 'done'\n")
    service = Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration())
    eventually(lambda: keeper_of(service) is not None, "its workers start", 60)
    stop_yard(workspace.home, signal.SIGKILL)
    flag.touch()
    service.wait_for_deployment()
    assert service.run("x") == "done"
    assert Client(service).ask("x").headers["x-runyard-version"] == "1"


def test_workers_keep_their_folder_when_the_next_yard_finishes_their_deployment(
    workspace: Workspace, tmp_path: Path
) -> None:
    flag = tmp_path / "go"
    slow = "import os, time\ndef init():\n    open('mine', 'w').close()\n"
    slow += f"    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"
    code = a_script(tmp_path / "code", slow + "def run(text): return os.path.exists('mine')\n")
    service = Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration())
    work = workspace.home / "services" / service.name / "versions" / "1" / "work"
    eventually((work / "mine").exists, "its worker starts", 60)
    stop_yard(workspace.home, signal.SIGKILL)
    service.update_deployment_state()  # starts the next yard
    flag.touch()
    service.wait_for_deployment()
    assert service.run("x") is True


def test_a_yard_that_is_killed_as_it_writes_down_a_success_is_no_failure(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'here'\n")
    keeper = keeper_of(service)
    stop_yard(workspace.home, signal.SIGKILL)
    with sqlite3.connect(workspace.home / "yard.db") as database:  # the last row was not written
        database.execute("update service_versions set state = 'Transitioning' where name = ?", (service.name,))
    database.close()
    service.update_deployment_state()
    service.wait_for_deployment()
    assert (service.state, service_view(service)["error"]) == ("Healthy", "")
    assert [one["state"] for one in service_view(service)["versions"]] == ["Healthy"]
    assert keeper_of(service) == keeper


def test_a_deployment_for_which_the_disk_has_no_room_leaves_the_name_free(workspace: Workspace, tmp_path: Path) -> None:
    name = a_name()
    folder = workspace.home / "services" / name
    Webservice.list(workspace)  # starts the yard, which makes the folder of all services
    folder.mkdir()
    (folder / "wanted.json.draft").symlink_to("/dev/full")
    code = a_script(tmp_path / "code", "def init(): pass\ndef run(text): return 'here'\n")
    with pytest.raises(RunyardException):
        Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    assert name not in [one.name for one in Webservice.list(workspace)]
    service = Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run("x") == "here"


def comes_back(service: Webservice) -> bool:
    service.update_deployment_state()
    return service.state == "Healthy"
