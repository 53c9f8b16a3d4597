"""End-to-end tests: train, register, deploy, call, update under load and delete a model."""

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
from service_support import (
    TIMES,
    Client,
    Load,
    deploy_service,
    register_factor,
    scoring_config,
    service_view,
    unique_name,
)
from support import eventually, with_this_python

pytestmark = pytest.mark.real

TRAIN = "import json, os\nos.makedirs('outputs', exist_ok=True)\njson.dump(3, open('outputs/factor.json', 'w'))\n"


def test_a_trained_model_is_deployed_and_called(
    experiment: Experiment,
    workspace: Workspace,
    project: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """B14.98, B14.100, B14.101."""
    run = experiment.submit(with_this_python(project(train=TRAIN)))
    run.wait_for_completion()
    name = unique_name("model")
    model = run.register_model(model_name=name, model_path="outputs/factor.json")
    (tmp_path / "score.py").write_text(TIMES.replace("MODEL", name))
    # without an environment the service uses that of the training run
    config = InferenceConfig("score.py", source_directory=str(tmp_path))
    service = Model.deploy(
        workspace, unique_name(), [model], config, AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1)
    )
    capsys.readouterr()
    service.wait_for_deployment(show_output=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Running"
    assert lines[-2:] == ["Succeeded", 'ACI service creation operation finished, operation "Succeeded"']
    assert service.state == "Healthy"
    assert service.run(json.dumps({"data": [1, 2]})) == [3, 6]
    assert service.run(input_data=b'{"data": [5]}') == [15]
    assert isinstance(Webservice(workspace, service.name), AciWebservice)
    assert [service.name for service in Webservice.list(workspace, model_name=name)] == [service.name]
    with pytest.raises(WebserviceException, match="is used by the service"):
        model.delete()
    service.delete()
    with pytest.raises(WebserviceException, match="no service named"):
        Webservice(workspace, service.name)
    model.delete()


def test_an_update_under_load_fails_no_request(workspace: Workspace, tmp_path: Path) -> None:
    name = unique_name("model")
    old = register_factor(workspace, tmp_path / "old", 2, name)
    service = deploy_service(workspace, tmp_path, TIMES.replace("MODEL", name), [old], workers=2)
    new = register_factor(workspace, tmp_path / "new", 7, name)
    with Load(service, 8, '{"data": [1]}') as load:
        load.wait_for_more()
        service.update(models=[new])
        service.wait_for_deployment()
        load.wait_for_more(100)
        assert Client(service).request('{"data": [1]}').text == "[7]"
    assert load.failures == {}
    assert set(load.results) == {"200 [2]", "200 [7]"}
    service.delete()


def test_a_worker_killed_under_load_is_replaced(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return len(text)\n", workers=2)
    clients = 8
    with Load(service, clients, "abc") as load:
        load.wait_for_more()
        victim = workers(service)[0]["pid"]
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in [worker["pid"] for worker in workers(service)], "the worker is replaced", 60)
        eventually(lambda: all(worker["state"] == "serving" for worker in workers(service)), "all workers serve", 60)
        load.wait_for_more(200)
    # only requests in progress on the killed worker are lost: at most one per client
    assert sum(load.failures.values()) <= clients
    assert load.results["200 3"] > 200
    service.update_deployment_state()
    assert service.state == "Healthy"
    service.delete()


def test_a_failed_update_leaves_the_old_version_serving(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'old'\n")
    broken = scoring_config(
        tmp_path / "broken", "def init(): raise RuntimeError('no such weights')\ndef run(text): return 1\n"
    )
    with Load(service, 2, "x") as load:
        service.update(inference_config=broken)
        with pytest.raises(WebserviceException, match="no such weights"):
            service.wait_for_deployment()
        load.wait_for_more(20)
    assert load.results.keys() == {'200 "old"'}
    assert service.state == "Healthy"
    assert service.run("x") == "old"
    service.delete()


def test_traffic_is_split_between_two_versions(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 'one'\n")
    second = scoring_config(tmp_path / "second", "def init(): pass\ndef run(text): return 'two'\n")
    assert service.create_version(20, inference_config=second) == 2
    service.wait_for_deployment()
    assert service.versions == {1: 80, 2: 20}
    client = Client(service)
    responses = [client.request("x").text for _ in range(50)]
    assert (responses.count('"one"'), responses.count('"two"')) == (40, 10)
    counts = service.stats()["versions"]
    assert (counts["1"]["requests"], counts["2"]["requests"]) == (40, 10)
    with Load(service, 4, "x") as load:
        load.wait_for_more()
        service.set_traffic({1: 0, 2: 100})
        eventually(
            lambda: [Client(service).request("x").text for _ in range(5)] == ['"two"'] * 5, "only version 2 serves", 60
        )
        load.wait_for_more()
    assert load.failures == {}
    assert service.versions == {2: 100}
    service.delete()


def test_every_deploy_configuration_creates_a_service(workspace: Workspace, tmp_path: Path) -> None:
    code = scoring_config(tmp_path, "def init(): pass\ndef run(text): return text\n")
    for kind, config in (
        (LocalWebservice, LocalWebservice.deploy_configuration()),
        (AksWebservice, AksWebservice.deploy_configuration(num_replicas=2, scoring_timeout_ms=5000)),
    ):
        service = Model.deploy(workspace, unique_name(), [], code, config)
        service.wait_for_deployment()
        assert isinstance(service, kind)
        assert service.run("hello") == "hello"
        service.delete()


def test_keys_authorize_requests_and_can_be_regenerated(workspace: Workspace, tmp_path: Path) -> None:
    """B14.98."""
    service = deploy_service(workspace, tmp_path, "def init(): pass\ndef run(text): return 1\n", auth_enabled=True)
    primary, secondary = service.get_keys()
    client = Client(service)
    assert service.run("x") == 1
    assert client.request("x").status == 401
    assert client.request("x", Authorization=f"Bearer {primary}x").status == 401
    assert client.request("x", Authorization=f"Bearer {secondary}").status == 200
    assert client.request(path="/healthz", method="GET").status == 200
    service.regen_key("Primary")
    new_primary, new_secondary = service.get_keys()
    assert (new_primary != primary, new_secondary) == (True, secondary)
    client = Client(service)
    assert client.request("x", Authorization=f"Bearer {primary}").status == 401
    assert Client(service).request("x", Authorization=f"Bearer {new_primary}").status == 200
    assert primary not in service.get_logs()
    service.delete()


def workers(service: Webservice) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = service_view(service)["versions"][-1]["workers"]
    return entries


def test_a_container_image_of_the_old_api_is_deployed(
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
    assert [image.id for image in Image.list(workspace=workspace, tags=["area"])] == ["digits.image:1"]
    service = Webservice.deploy_from_image(
        workspace, unique_name(), image, AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1)
    )
    service.wait_for_deployment()
    assert service.run("ab") == "abab"
    assert service.image_id == image.id
    service.delete()
    image.delete()
