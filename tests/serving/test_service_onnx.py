"""ONNX models are served without a scoring script, in an environment created by the yard."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from bench.onnx_bytes import perceptron
from runyard import LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from service_support import Client, Load, unique_name
from support import eventually

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("onnx services")]


def register_perceptron(workspace: Workspace, folder: Path, weights: list[list[float]]) -> Model:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(perceptron(weights))
    return Model.register(
        workspace, str(folder / "model.onnx"), unique_name("onnx"), model_framework=Model.Framework.ONNX
    )


def deploy(workspace: Workspace, model: Model, **options: object) -> Webservice:
    service = Model.deploy(workspace, unique_name(), [model], None, LocalWebservice.deploy_configuration(**options))
    service.wait_for_deployment()
    return service


def test_an_onnx_model_is_served_without_code(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy(workspace, register_perceptron(workspace, tmp_path, [[1.0, 2.0], [10.0, 20.0]]))
    assert service.run({"data": [[1, 1], [2, 0]]}) == [[11.0, 22.0], [2.0, 4.0]]
    assert service.run([[0.5, 0]]) == [[0.5, 1.0]]
    assert service.run({"x": [3, 0]}) == [[3.0, 6.0]]
    client = Client(service)
    for body, message in (
        ("{", "the body is not JSON"),
        ('{"data": [[1, 2, 3]]}', "expected shape ['any', 2], got [1, 3]"),
        ('{"data": [["a", "b"]]}', "expected an array of float32"),
        ('{"data": [[null, 1]]}', "expected an array of float32"),
        ('{"other": 1}', "expected an object with 'data' or 'x'"),
    ):
        response = client.request(body)
        assert (response.status, message in json.loads(response.text)["error"]["message"]) == (400, True), response.text
    document = json.loads(client.request(path="/swagger.json", method="GET").text)
    assert document["components"]["schemas"]["ServiceInput"]["example"] == {"data": [[0, 0]]}
    service.delete()


def test_concurrent_requests_are_scored_in_batches(workspace: Workspace, tmp_path: Path) -> None:
    service = deploy(
        workspace, register_perceptron(workspace, tmp_path, [[2.0]]), batching={"largest": 8, "wait_ms": 300}
    )
    clients = [Client(service) for _ in range(8)]
    responses: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: responses.update({n: clients[n].request(json.dumps([[n]])).text}))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {n: json.loads(text) for n, text in responses.items()} == {n: [[2.0 * n]] for n in range(8)}
    stats = service.stats()
    assert stats["batched_rows"] == 8
    assert stats["batches"] < 8
    # a mismatching request is rejected without affecting others
    assert clients[0].request('{"data": [[1, 2]]}').status == 400
    with Load(service, 4, "[[4]]") as load:
        service.update(batching=False)
        eventually(lambda: not is_batching(service), "batching is off", 60)
        load.wait_for_more(100)
    assert load.results.keys() == {"200 [[8.0]]"}
    service.delete()


def is_batching(service: Webservice) -> bool:
    before = service.stats()["batches"]
    assert service.run([[1]]) == [[2.0]]
    return bool(service.stats()["batches"] > before)


def test_an_invalid_onnx_model_fails_with_the_error_of_onnx_runtime(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not an ONNX model")
    model = Model.register(workspace, str(tmp_path / "model.onnx"), unique_name("onnx"), model_framework="Onnx")
    service = Model.deploy(workspace, unique_name(), [model])
    with pytest.raises(WebserviceException, match=r"ONNX Runtime cannot load model\.onnx"):
        service.wait_for_deployment()
    service.delete()
