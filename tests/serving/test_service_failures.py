"""Concurrent changes of a service, and logs on a full disk."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from runyard.serving.supervisor_client import free_port
from service_support import Client, deploy_service, scoring_config, unique_name
from support import eventually

pytestmark = pytest.mark.real

ECHO = "def init(): pass\ndef run(text): return text\n"


def service_folder(workspace: Workspace, name: str) -> Path:
    return workspace.home / "services" / name


def init_waiting_for(flag: Path) -> str:
    return f"import os, time\ndef init():\n    while not os.path.exists({str(flag)!r}): time.sleep(0.01)\n"


def state_of(service: Webservice) -> str:
    service.update_deployment_state()
    return service.state


def test_only_keys_can_be_changed_during_a_deployment(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, ECHO, auth_enabled=True)
    old, _ = service.get_keys()
    flag = tmp_path / "go"
    broken = init_waiting_for(flag) + "    raise RuntimeError('no such weights')\ndef run(text): return 1\n"
    service.update(inference_config=scoring_config(tmp_path / "broken", broken))
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
    assert Client(service).request("x", Authorization=f"Bearer {new}").status == 200
    assert Client(service).request("x", Authorization=f"Bearer {old}").status == 401
    service.update(workers=2)  # the deployment has ended, so changes are allowed again
    service.delete()


def test_a_service_moves_to_another_port(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, ECHO)
    connected = Client(service)
    assert connected.request("x").status == 200
    used_ports = {urlsplit(service.scoring_uri).port: service.name for service in Webservice.list(workspace)}
    port = free_port("127.0.0.1", 0, used_ports)
    with pytest.raises(WebserviceException, match=r"cannot listen on port \d+ of 0\.0\.0\.0"):
        service.update(host="0.0.0.0")  # its port is in use there by the service itself
    service.update(port=port)
    assert str(port) in service.scoring_uri
    assert connected.request("x").status == 200  # existing connections are not closed
    assert Client(service).request("x").text == '"x"'
    service.delete()


def test_a_draining_version_still_answers_open_connections(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'one'\n")
    second = scoring_config(tmp_path / "second", "def init(): pass\ndef run(text): return 'two'\n")
    service.create_version(50, inference_config=second)
    service.wait_for_deployment()
    clients = [Client(service) for _ in range(8)]
    assert {client.request("x").text for client in clients} == {'"one"', '"two"'}
    changing = threading.Thread(target=service.set_traffic, args=({1: 0, 2: 100},), daemon=True)
    changing.start()
    status_file = service_folder(workspace, service.name) / "found.json"
    eventually(
        lambda: json.loads(status_file.read_text())["versions"]["1"]["workers"][0]["state"] == "draining",
        "version 1 is draining",
    )
    assert [client.request("x").text for client in clients] == ['"one"'] * 8
    changing.join(60)
    service.delete()


def test_a_deployment_ends_although_its_log_cannot_be_written(workspace: Workspace, tmp_path: Path) -> None:
    name = unique_name()
    Webservice.list(workspace)  # starts the yard, which creates the services folder
    service_folder(workspace, name).mkdir()
    (service_folder(workspace, name) / "deploy.log").symlink_to("/dev/full")
    code = scoring_config(
        tmp_path / "code", "def init(): raise RuntimeError('no such weights')\ndef run(text): return 1\n"
    )
    service = Model.deploy(workspace, name, [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="no such weights"):
        service.wait_for_deployment()
    assert state_of(service) == "Failed"
    service.delete()


def test_a_service_is_deleted_while_its_first_version_starts(workspace: Workspace, tmp_path: Path) -> None:
    code = scoring_config(tmp_path / "code", init_waiting_for(tmp_path / "never") + "def run(text): return 1\n")
    service = Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration())
    folder = service_folder(workspace, service.name)
    eventually(lambda: (folder / "wanted.json").exists() and has_traffic(folder), "its supervisor is about to start")
    service.delete()
    assert not folder.exists()


def has_traffic(folder: Path) -> bool:
    return bool(json.loads((folder / "wanted.json").read_text())["traffic"])
