"""A model is trained, registered, deployed, called, changed under load, and deleted."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import (
    AciWebservice,
    AksWebservice,
    Experiment,
    InferenceConfig,
    LocalWebservice,
    Model,
    Webservice,
    Workspace,
)
from runyard.errors import WebserviceException
from service_support import TIMES, Client, Load, a_factor, a_name, a_script, deployed, service_view
from support import eventually, with_this_python

pytestmark = pytest.mark.real

TRAIN = "import json, os\nos.makedirs('outputs', exist_ok=True)\njson.dump(3, open('outputs/factor.json', 'w'))\n"


def test_from_training_to_answers(
    experiment: Experiment,
    workspace: Workspace,
    project: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """B14.98, B14.100, B14.101."""
    run = experiment.submit(with_this_python(project(train=TRAIN)))
    run.wait_for_completion()
    name = a_name("model")
    model = run.register_model(model_name=name, model_path="outputs/factor.json")
    (tmp_path / "score.py").write_text(TIMES.replace("MODEL", name))
    # no environment is named: the service runs in that of the training run
    config = InferenceConfig("score.py", source_directory=str(tmp_path))
    service = Model.deploy(
        workspace, a_name(), [model], config, AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1)
    )
    capsys.readouterr()
    service.wait_for_deployment(show_output=True)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Running"
    assert said[-2:] == ["Succeeded", 'ACI service creation operation finished, operation "Succeeded"']
    assert service.state == "Healthy"
    assert service.run(json.dumps({"data": [1, 2]})) == [3, 6]
    assert service.run(input_data=b'{"data": [5]}') == [15]
    assert isinstance(Webservice(workspace, service.name), AciWebservice)
    assert [one.name for one in Webservice.list(workspace, model_name=name)] == [service.name]
    with pytest.raises(WebserviceException, match="is used by the service"):
        model.delete()
    service.delete()
    with pytest.raises(WebserviceException, match="no service named"):
        Webservice(workspace, service.name)
    model.delete()


def test_an_update_under_load_fails_no_request(workspace: Workspace, tmp_path: Path) -> None:
    name = a_name("model")
    old = a_factor(workspace, tmp_path / "old", 2, name)
    service = deployed(workspace, tmp_path, TIMES.replace("MODEL", name), [old], workers=2)
    new = a_factor(workspace, tmp_path / "new", 7, name)
    with Load(service, 8, '{"data": [1]}') as load:
        load.until_more()
        service.update(models=[new])
        service.wait_for_deployment()
        load.until_more(100)
        assert Client(service).ask('{"data": [1]}').text == "[7]"
    assert load.failures == {}
    assert set(load.seen) == {"200 [2]", "200 [7]"}
    service.delete()


def test_a_worker_that_is_killed_under_load_is_replaced(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return len(text)\n", workers=2)
    clients = 8
    with Load(service, clients, "abc") as load:
        load.until_more()
        victim = workers(service)[0]["pid"]
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in [one["pid"] for one in workers(service)], "another one takes its place", 60)
        eventually(lambda: all(one["state"] == "serving" for one in workers(service)), "it serves", 60)
        load.until_more(200)
    # what the dead one was working on is lost, and nothing else: at most what each client had sent to it
    assert sum(load.failures.values()) <= clients
    assert load.seen["200 3"] > 200
    service.update_deployment_state()
    assert service.state == "Healthy"
    service.delete()


def test_a_version_that_cannot_serve_leaves_the_old_one_alone(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'old'\n")
    broken = a_script(
        tmp_path / "broken", "def init(): raise RuntimeError('no such weights')\ndef run(text): return 1\n"
    )
    with Load(service, 2, "x") as load:
        service.update(inference_config=broken)
        with pytest.raises(WebserviceException, match="no such weights"):
            service.wait_for_deployment()
        load.until_more(20)
    assert load.seen.keys() == {'200 "old"'}
    assert service.state == "Healthy"
    assert service.run("x") == "old"
    service.delete()


def test_two_versions_share_the_requests(workspace: Workspace, tmp_path: Path) -> None:
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 'one'\n")
    second = a_script(tmp_path / "second", "def init(): pass\ndef run(text): return 'two'\n")
    assert service.create_version(20, inference_config=second) == 2
    service.wait_for_deployment()
    assert service.versions == {1: 80, 2: 20}
    client = Client(service)
    got = [client.ask("x").text for _ in range(50)]
    assert (got.count('"one"'), got.count('"two"')) == (40, 10)
    counted = service.stats()["versions"]
    assert (counted["1"]["requests"], counted["2"]["requests"]) == (40, 10)
    with Load(service, 4, "x") as load:
        load.until_more()
        service.set_traffic({1: 0, 2: 100})
        eventually(lambda: [Client(service).ask("x").text for _ in range(5)] == ['"two"'] * 5, "only two is left", 60)
        load.until_more()
    assert load.failures == {}
    assert service.versions == {2: 100}
    service.delete()


def test_each_kind_of_configuration_gives_a_service_here(workspace: Workspace, tmp_path: Path) -> None:
    code = a_script(tmp_path, "def init(): pass\ndef run(text): return text\n")
    for kind, config in (
        (LocalWebservice, LocalWebservice.deploy_configuration()),
        (AksWebservice, AksWebservice.deploy_configuration(num_replicas=2, scoring_timeout_ms=5000)),
    ):
        service = Model.deploy(workspace, a_name(), [], code, config)
        service.wait_for_deployment()
        assert isinstance(service, kind)
        assert service.run("hello") == "hello"
        service.delete()


def test_keys_open_a_service_and_can_be_replaced(workspace: Workspace, tmp_path: Path) -> None:
    """B14.98."""
    service = deployed(workspace, tmp_path, "def init(): pass\ndef run(text): return 1\n", auth_enabled=True)
    primary, secondary = service.get_keys()
    client = Client(service)
    assert service.run("x") == 1
    assert client.ask("x").status == 401
    assert client.ask("x", Authorization=f"Bearer {primary}x").status == 401
    assert client.ask("x", Authorization=f"Bearer {secondary}").status == 200
    assert client.ask(path="/healthz", method="GET").status == 200
    service.regen_key("Primary")
    renewed, kept = service.get_keys()
    assert (renewed != primary, kept) == (True, secondary)
    again = Client(service)
    assert again.ask("x", Authorization=f"Bearer {primary}").status == 401
    assert Client(service).ask("x", Authorization=f"Bearer {renewed}").status == 200
    assert primary not in service.get_logs()
    service.delete()


def workers(service: Webservice) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = service_view(service)["versions"][-1]["workers"]
    return entries


def test_an_image_of_2018_is_deployed(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """B14.99."""
    from runyard import ContainerImage, Image

    monkeypatch.chdir(tmp_path)
    (tmp_path / "score.py").write_text("import helper\ndef init(): pass\ndef run(text): return helper.double(text)\n")
    (tmp_path / "helper.py").write_text("def double(text): return text + text\n")
    config = ContainerImage.image_configuration(
        "score.py", "python", dependencies=["helper.py"], tags={"area": "digits"}, description="an image"
    )
    image = Image.create(name="digits.image", models=[], image_config=config, workspace=workspace)
    assert "Creating image" in capsys.readouterr().out
    image.wait_for_creation(show_output=True)
    assert (image.creation_state, image.version) == ("Succeeded", 1)
    assert [one.id for one in Image.list(workspace=workspace, tags=["area"])] == ["digits.image:1"]
    service = Webservice.deploy_from_image(
        workspace, a_name(), image, AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1)
    )
    service.wait_for_deployment()
    assert service.run("ab") == "abab"
    assert service.image_id == image.id
    service.delete()
    image.delete()
