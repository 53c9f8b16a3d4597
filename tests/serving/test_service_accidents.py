"""Changes that meet other changes, and disks that are full."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from runyard.serving.supervisor_client import free_port
from service_support import Client, a_name, a_script, deployed
from support import eventually, lock_holder

pytestmark = pytest.mark.real

ECHO = "def init(): pass\ndef run(text): return text\n"


def folder_of(workspace: Workspace, name: str) -> Path:
    return workspace.home / "services" / name


def until(flag: Path) -> str:
    return f"import os, time\ndef init():\n    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"


def state_of(service: Webservice) -> str:
    service.update_deployment_state()
    return service.state


def test_while_a_version_is_deployed_keys_are_replaced_for_good_and_nothing_else_changes(
    workspace: Workspace, tmp_path: Path
) -> None:
    service = deployed(workspace, tmp_path, ECHO, auth_enabled=True)
    old, _ = service.get_keys()
    flag = tmp_path / "go"
    broken = until(flag) + "    raise RuntimeError('no such weights')\ndef run(text): return 1\n"
    service.update(inference_config=a_script(tmp_path / "broken", broken))
    with pytest.raises(WebserviceException, match="is being deployed"):
        service.update(workers=2)
    renewing = threading.Thread(target=service.regen_key, args=("Primary",), daemon=True)
    renewing.start()
    eventually(lambda: service.get_keys()[0] != old, "the key is replaced")
    flag.touch()
    with pytest.raises(WebserviceException, match="no such weights"):
        service.wait_for_deployment()
    renewing.join(60)
    new, _ = service.get_keys()
    assert new != old
    assert Client(service).ask("x", Authorization=f"Bearer {new}").status == 200
    assert Client(service).ask("x", Authorization=f"Bearer {old}").status == 401
    service.update(workers=2)  # it is over: changes are taken again
    service.delete()


def test_a_service_moves_to_another_port(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, ECHO)
    before = Client(service)
    assert before.ask("x").status == 200
    taken = {urlsplit(service.scoring_uri).port: service.name for service in Webservice.list(workspace)}
    port = free_port("127.0.0.1", 0, taken)
    with pytest.raises(WebserviceException, match=r"cannot listen on port \d+ of 0\.0\.0\.0"):
        service.update(host="0.0.0.0")  # where its own port is taken, by itself
    service.update(port=port)
    assert str(port) in service.scoring_uri
    assert before.ask("x").status == 200  # what is connected is not cut off
    assert Client(service).ask("x").text == '"x"'
    service.delete()


def test_a_connection_that_is_told_to_go_is_answered_when_the_versions_change_places(
    workspace: Workspace, tmp_path: Path
) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'one'\n")
    second = a_script(tmp_path / "second", "def init(): pass\ndef run(text): return 'two'\n")
    service.create_version(50, inference_config=second)
    service.wait_for_deployment()
    clients = [Client(service) for _ in range(8)]
    assert {client.ask("x").text for client in clients} == {'"one"', '"two"'}
    changing = threading.Thread(target=service.set_traffic, args=({1: 0, 2: 100},), daemon=True)
    changing.start()
    found = folder_of(workspace, service.name) / "found.json"
    eventually(lambda: json.loads(found.read_text())["versions"]["1"]["workers"][0]["state"] == "draining", "it goes")
    assert [client.ask("x").text for client in clients] == ['"one"'] * 8
    changing.join(60)
    service.delete()


def test_a_full_disk_does_not_end_a_service(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "import os\ndef init(): pass\ndef run(text): return os.getpid()\n")
    folder = folder_of(workspace, service.name)
    keeper, worker = lock_holder(folder / "keeper.lock"), service.run("x")
    draft = folder / "found.json.draft"
    draft.symlink_to("/dev/full")
    os.kill(worker, signal.SIGKILL)
    assert Client(service).ask("x").text != str(worker)
    assert lock_holder(folder / "keeper.lock") == keeper
    assert workers_told(folder) == [worker]
    draft.unlink()
    eventually(lambda: workers_told(folder) != [worker], "it tells when there is room")
    assert lock_holder(folder / "keeper.lock") == keeper
    service.delete()


def test_a_deployment_whose_log_cannot_be_written_has_an_end_all_the_same(workspace: Workspace, tmp_path: Path) -> None:
    name = a_name()
    Webservice.list(workspace)  # starts the yard, which makes the folder of all services
    folder_of(workspace, name).mkdir()
    (folder_of(workspace, name) / "deploy.log").symlink_to("/dev/full")
    code = a_script(tmp_path / "code", "def init(): raise RuntimeError('no such weights')\ndef run(text): return 1\n")
    service = Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="no such weights"):
        service.wait_for_deployment()
    assert state_of(service) == "Failed"
    service.delete()


def test_a_service_is_deleted_while_its_first_version_starts(workspace: Workspace, tmp_path: Path) -> None:
    code = a_script(tmp_path / "code", until(tmp_path / "never") + "def run(text): return 1\n")
    service = Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration())
    folder = folder_of(workspace, service.name)
    eventually(lambda: (folder / "wanted.json").exists() and has_traffic(folder), "its keeper is about to start")
    service.delete()
    assert not folder.exists()


def has_traffic(folder: Path) -> bool:
    return bool(json.loads((folder / "wanted.json").read_text())["traffic"])


def workers_told(folder: Path) -> list[int]:
    return [one["pid"] for one in json.loads((folder / "found.json").read_text())["versions"]["1"]["workers"]]
