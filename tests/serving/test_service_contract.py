"""The scoring contract: arguments of the script, responses to clients, and the description of the service."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import LocalWebservice, Model, Webservice, Workspace
from service_support import Client, deploy_service, register_factor, scoring_config, unique_name
from support import eventually

pytestmark = pytest.mark.real

TYPED = """
import numpy as np
from inference_schema.schema_decorators import input_schema, output_schema
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.parameter_types.standard_py_parameter_type import StandardPythonParameterType

def init(): pass

@input_schema('data', NumpyParameterType(np.array([[1.0, 2.0]])))
@input_schema('scale', StandardPythonParameterType(2.0))
@output_schema(StandardPythonParameterType([[2.0, 4.0]]))
def run(data, scale):
    assert data.dtype == np.float64 and data.shape[1] == 2
    return np.nan_to_num(data * scale)
"""


def test_a_script_receives_text_and_returns_any_json_value(workspace: Workspace, tmp_path: Path) -> None:
    """B14.97, B14.98."""
    code = """
import json, os
import numpy as np
def init(): print('the model is in', os.environ['AZUREML_MODEL_DIR'])
def run(text):
    assert isinstance(text, str)
    return {'list': [7], 'dict': {'a': 1}, 'text': json.dumps([1]), 'none': None, 'array': np.arange(3),
            'number': np.float32(0.5), 'accents': 'é€'}[text]
"""
    service = deploy_service(workspace, tmp_path, code)
    client = Client(service)
    assert client.request("list").text == "[7]"
    assert client.request("dict").text == '{"a": 1}'
    assert json.loads(service.run("text")) == [1]
    assert service.run("none") is None
    assert service.run(b"array") == [0, 1, 2]
    assert service.run("number") == 0.5
    assert service.run("accents") == "é€"
    assert "the model is in" in service.get_logs()
    service.delete()


def test_models_are_available_at_all_documented_paths(workspace: Workspace, tmp_path: Path) -> None:
    """B14.95, B14.96."""
    first, second = unique_name("model"), unique_name("model")
    models = [register_factor(workspace, tmp_path / name, factor, name) for name, factor in ((first, 3), (second, 5))]
    code = f"""
import json, os
from azureml.core.model import Model
def init(): pass
def run(text):
    folder = os.environ['AZUREML_MODEL_DIR']
    first = open(os.path.join(folder, {first!r}, '1', 'factor.json')).read()
    second = open(Model.get_model_path({second!r})).read()
    return [int(first), int(second), os.path.relpath(folder)]
"""
    service = deploy_service(workspace, tmp_path, code, models)
    assert service.run("") == [3, 5, "azureml-models"]
    service.delete()


def test_a_rawhttp_script_receives_the_request_and_sets_the_status(workspace: Workspace, tmp_path: Path) -> None:
    code = """
from azureml.contrib.services.aml_request import AMLRequest, rawhttp
from azureml.contrib.services.aml_response import AMLResponse
def init(): pass
@rawhttp
def run(request):
    assert isinstance(request, AMLRequest)
    if request.method == 'GET':
        return AMLResponse(request.args.get('q', '') + request.full_path, 200)
    if request.method == 'POST':
        return AMLResponse(request.get_data()[::-1], 201, {'X-Kind': request.headers['content-type']})
    return AMLResponse({'no': request.method}, 418, json_str=True)
"""
    service = deploy_service(workspace, tmp_path, code)
    client = Client(service)
    assert client.request(method="GET", path="/score?q=a%20b").text == "a b/score?q=a%20b"
    posted = client.request(b"abc", Content_Type="image/png")
    assert (posted.status, posted.text, posted.headers["x-kind"]) == (201, "cba", "image/png")
    assert (client.request("x", method="PUT").status, client.request("x", method="PUT").text) == (418, '{"no": "PUT"}')
    service.delete()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


@pytest.fixture
def typed(workspace: Workspace, folder: Path) -> Webservice:
    """Deployed once for the tests of this file."""
    name_file = folder / "name"
    if not name_file.exists():
        config = LocalWebservice.deploy_configuration(auth_enabled=True)
        service = Model.deploy(workspace, unique_name("typed"), [], scoring_config(folder, TYPED), config)
        service.wait_for_deployment()
        name_file.write_text(service.name)
    return Webservice(workspace, name_file.read_text())


def test_a_schema_converts_json_to_arguments_and_rejects_mismatches(typed: Webservice) -> None:
    assert typed.run({"data": [[1, 2], [3, 4]], "scale": 2}) == [[2.0, 4.0], [6.0, 8.0]]
    client, key = Client(typed), f"Bearer {typed.get_keys()[0]}"
    for body, message in (
        ("not json", "the body is not JSON"),
        ("[1]", "expected an object with 'scale', 'data'"),
        ('{"data": [[1, 2]]}', "missing 'scale'"),
        ('{"data": [[1, 2]], "scale": 1, "more": 2}', "unexpected 'more'"),
        ('{"data": [[1, 2, 3]], "scale": 1}', "got [1, 3]"),
        ('{"data": [["a", "b"]], "scale": 1}', "expected an array of float64"),
        ('{"data": [[1, 2]], "scale": "x"}', "expected a number"),
    ):
        response = client.request(body, Authorization=key)
        assert (response.status, message in json.loads(response.text)["error"]["message"]) == (400, True), response.text


def test_the_service_describes_itself(typed: Webservice) -> None:
    document = json.loads(Client(typed).request(path="/swagger.json", method="GET").text)
    service_input = document["components"]["schemas"]["ServiceInput"]
    assert service_input["example"] == {"scale": 2.0, "data": [[1.0, 2.0]]}
    assert service_input["properties"]["data"]["items"]["maxItems"] == 2
    assert document["components"]["schemas"]["ServiceOutput"]["type"] == "array"
    assert document["paths"]["/score"]["post"]["security"] == [{"key": []}]
    assert "<form" in Client(typed).request(path="/docs", method="GET").text


def test_requests_are_logged_and_counted(typed: Webservice) -> None:
    client, key = Client(typed), f"Bearer {typed.get_keys()[1]}"
    before = typed.stats()["requests"]
    response = client.request('{"data": [[1, 2]], "scale": 1}', Authorization=key, X_Request_Id="my-own-id")
    assert response.headers["x-request-id"] == "my-own-id"
    assert typed.stats()["requests"] == before + 1
    requests = f"/api/services/{typed.name}/requests"
    eventually(lambda: typed.workspace.connection.get(requests)[0]["id"] == "my-own-id", "the request is logged")
    last = typed.workspace.connection.get(requests)[0]
    assert (last["status"], last["path"], last["version"]) == (200, "/score", 1)
    assert client.request(path="/metrics", method="GET").status == 401
    text = Client(typed).request(path="/metrics", method="GET", Authorization=key).text
    assert f'runyard_service_requests_total{{service="{typed.name}",version="1",result="ok"}}' in text
    assert 'le="+Inf"' in text
    invoked = typed.workspace.connection.post(
        f"/api/services/{typed.name}/invoke", {"body": '{"data": [[1, 2]], "scale": 3}'}
    )
    assert (invoked["status"], invoked["json"]) == (200, [[3.0, 6.0]])


def test_pipelined_requests_are_answered_in_order(typed: Webservice) -> None:
    """Covers several requests in one packet, one request in many packets, and chunked bodies."""
    key = typed.get_keys()[0].encode()

    def request(scale: int, chunked: bool = False) -> bytes:
        body = b'{"data": [[1, 1]], "scale": %d}' % scale
        head = b"POST /score HTTP/1.1\r\nHost: x\r\nAuthorization: bearer " + key
        if chunked:
            parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:5], body[5:]))
            return head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
        return head + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    requests = request(1) + request(2) + request(3, chunked=True) + request(4)
    address = urlsplit(typed.scoring_uri)
    for size in (len(requests), 7):
        with socket.create_connection((address.hostname, address.port), timeout=30) as client:
            for begin in range(0, len(requests), size):
                client.sendall(requests[begin : begin + size])
            client.shutdown(socket.SHUT_WR)
            received = b""
            while data := client.recv(65536):
                received += data
        responses = [
            part.partition(b"\r\n\r\n")[2].split(b"HTTP/1.1")[0] for part in received.split(b"HTTP/1.1 200 OK")[1:]
        ]
        assert [json.loads(response) for response in responses] == [[[n * 1.0, n * 1.0]] for n in (1, 2, 3, 4)]


def test_the_service_conforms_to_its_openapi_document(typed: Webservice, tmp_path: Path) -> None:
    """Schemathesis sends valid and invalid requests generated from the document."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", typed.swagger_uri]
    command += ["--header", f"Authorization: Bearer {typed.get_keys()[0]}", "--checks", "all", "--max-examples", "60"]
    command += ["--seed", "1", "--generation-database", "none", "--request-timeout", "60", "--no-color"]
    settings = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert typed.stats()["failed"] == 0
