"""An ONNX model is a service without a line of code, in an environment that the yard makes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bench.onnx_bytes import perceptron
from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from service_support import Client, Load, a_name
from support import eventually

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("onnx services")]


def a_model(workspace: Workspace, folder: Path, weights: list[list[float]]) -> Model:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(perceptron(weights))
    return Model.register(workspace, str(folder / "model.onnx"), a_name("onnx"), model_framework=Model.Framework.ONNX)


def served(workspace: Workspace, model: Model, **how: object) -> Webservice:
    service = Model.deploy(workspace, a_name(), [model], None, LocalWebservice.deploy_configuration(**how))
    service.wait_for_deployment()
    return service


def test_an_onnx_model_is_served_without_code(workspace: Workspace, tmp_path: Path) -> None:
    service = served(workspace, a_model(workspace, tmp_path, [[1.0, 2.0], [10.0, 20.0]]))
    assert service.run({"data": [[1, 1], [2, 0]]}) == [[11.0, 22.0], [2.0, 4.0]]
    assert service.run([[0.5, 0]]) == [[0.5, 1.0]]
    assert service.run({"x": [3, 0]}) == [[3.0, 6.0]]
    client = Client(service)
    for body, said in (
        ("{", "the body is not JSON"),
        ('{"data": [[1, 2, 3]]}', "expected shape ['any', 2], got [1, 3]"),
        ('{"data": [["a", "b"]]}', "expected an array of float32"),
        ('{"data": [[null, 1]]}', "expected an array of float32"),
        ('{"other": 1}', "expected an object with 'data' or 'x'"),
    ):
        answer = client.ask(body)
        assert (answer.status, said in json.loads(answer.text)["error"]["message"]) == (400, True), answer.text
    described = json.loads(client.ask(path="/swagger.json", method="GET").text)
    assert described["components"]["schemas"]["ServiceInput"]["example"] == {"data": [[0, 0]]}
    service.delete()


def test_requests_that_are_there_together_are_scored_together(workspace: Workspace, tmp_path: Path) -> None:
    service = served(workspace, a_model(workspace, tmp_path, [[2.0]]), batching={"largest": 8, "wait_ms": 300})
    clients = [Client(service) for _ in range(8)]
    got: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: got.update({n: clients[n].ask(json.dumps([[n]])).text})) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {n: json.loads(text) for n, text in got.items()} == {n: [[2.0 * n]] for n in range(8)}
    counted = service.stats()
    assert counted["batched_rows"] == 8
    assert counted["batches"] < 8
    # one that does not fit is refused by itself
    assert clients[0].ask('{"data": [[1, 2]]}').status == 400
    with Load(service, 4, "[[4]]") as load:
        service.update(batching=False)
        eventually(lambda: not grows(service), "none are scored together any more", 60)
        load.until_more(100)
    assert load.seen.keys() == {"200 [[8.0]]"}
    service.delete()


def grows(service: Webservice) -> bool:
    before = service.stats()["batches"]
    assert service.run([[1]]) == [[2.0]]
    return bool(service.stats()["batches"] > before)


def test_what_is_no_onnx_model_fails_with_what_onnx_runtime_says(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"this is none")
    model = Model.register(workspace, str(tmp_path / "model.onnx"), a_name("onnx"), model_framework="Onnx")
    service = Model.deploy(workspace, a_name(), [model])
    with pytest.raises(WebserviceException, match=r"ONNX Runtime cannot load model\.onnx"):
        service.wait_for_deployment()
    service.delete()
