"""Invalid deployments and requests: clear errors, reported as early as possible, without effect on other clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import InferenceConfig, LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from service_support import (
    Client,
    current_python,
    deploy_service,
    register_factor,
    scoring_config,
    service_view,
    unique_name,
)
from support import eventually

pytestmark = pytest.mark.real

SCRIPTED = """
import json, os, sys, time
def init(): pass
def run(text):
    options = json.loads(text)
    if options.get('raise'): raise ValueError('the password is hunter2')
    if options.get('exit'): os._exit(9)
    if options.get('leave'): sys.exit('bye')
    if options.get('odd'): return object()
    time.sleep(options.get('sleep', 0))
    return 'well'
"""


@pytest.fixture
def service(workspace: Workspace, tmp_path: Path) -> Iterator[Webservice]:
    limits = {"timeout_s": 2, "waiting": 2, "receive_s": 3, "body_mb": 1, "bodies_mb": 1.5}
    service = deploy_service(workspace, tmp_path, SCRIPTED, limits=limits)
    yield service
    service.delete()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def run(text): return 1\n", r"has no init\(\)"),
        ("def init(): pass\n", r"has no run\(\)"),
        ("x = 1\n", r"has no init\(\) and no run\(\)"),
        ("def init(:\n", "is not valid Python"),
    ],
)
def test_an_invalid_script_is_rejected_before_it_is_uploaded(
    workspace: Workspace, tmp_path: Path, code: str, message: str
) -> None:
    name = unique_name()
    with pytest.raises(WebserviceException, match=message):
        Model.deploy(workspace, name, [], scoring_config(tmp_path, code), LocalWebservice.deploy_configuration())
    assert name not in workspace.webservices


def test_a_missing_script_is_rejected_immediately(tmp_path: Path) -> None:
    with pytest.raises(WebserviceException, match=r"'absent\.py' does not exist"):
        InferenceConfig("absent.py", source_directory=str(tmp_path), environment=current_python())


def test_a_function_that_is_missing_at_run_time_fails_the_deployment(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("def init(): pass\n")
    code = scoring_config(tmp_path, "from parts import *\n")
    service = Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match=r"has no function run\(\)"):
        service.wait_for_deployment()
    assert service.state == "Failed"
    service.delete()


def test_a_script_that_cannot_be_imported_fails_with_its_traceback(workspace: Workspace, tmp_path: Path) -> None:
    code = scoring_config(tmp_path, "import missing_module\ndef init(): pass\ndef run(text): pass\n")
    service = Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="No module named 'missing_module'"):
        service.wait_for_deployment()
    assert "Traceback" in service.get_logs()
    service.delete()


def test_invalid_names_ports_and_models_are_rejected(workspace: Workspace, tmp_path: Path) -> None:
    """B14.102."""
    code = scoring_config(tmp_path, "def init(): pass\ndef run(text): return 1\n")
    config = LocalWebservice.deploy_configuration()
    for name in ("ab", "Upper", "ends-", "1st", "a" * 33, "under_score"):
        with pytest.raises(WebserviceException, match="invalid service name"):
            Model.deploy(workspace, name, [], code, config)
    with pytest.raises(WebserviceException, match="unknown-model"):
        Model.deploy(workspace, unique_name(), ["unknown-model"], code, config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(WebserviceException, match=f"cannot listen on port {port} of 127.0.0.1"):
            Model.deploy(workspace, unique_name(), [], code, LocalWebservice.deploy_configuration(port=port))
    service = Model.deploy(workspace, unique_name(), [], code, config)
    service.wait_for_deployment()
    with pytest.raises(WebserviceException, match="already exists"):
        Model.deploy(workspace, service.name, [], code, config)
    same_port = LocalWebservice.deploy_configuration(port=service.port)
    with pytest.raises(WebserviceException, match=f"used by the service '{service.name}'"):
        Model.deploy(workspace, unique_name(), [], code, same_port)
    updated = Model.deploy(workspace, service.name, [], code, config, overwrite=True)
    updated.wait_for_deployment()
    assert updated.versions == {2: 100}
    assert updated.port == service.port
    updated.delete()


def test_a_model_that_is_not_onnx_needs_a_script(workspace: Workspace, tmp_path: Path) -> None:
    model = register_factor(workspace, tmp_path, 1, unique_name("model"))
    with pytest.raises(WebserviceException, match="cannot be served without a scoring script"):
        Model.deploy(workspace, unique_name(), [model])


def test_an_exception_in_the_script_is_a_500_with_an_id_and_no_details(service: Webservice) -> None:
    response = Client(service).request(json.dumps({"raise": True}))
    assert response.status == 500
    error = json.loads(response.text)["error"]
    assert error["request_id"] == response.headers["x-request-id"]
    assert "hunter2" not in response.text
    log = service.get_logs()
    assert f"request {error['request_id']} failed:" in log
    assert "ValueError: the password is hunter2" in log
    client = Client(service)
    assert client.request(json.dumps({"odd": True})).status == 500
    assert client.request(json.dumps({"leave": True})).status == 500
    assert client.request("{}").text == '"well"'


def test_a_worker_that_exits_is_replaced(service: Webservice) -> None:
    for _ in range(2):
        with pytest.raises(WebserviceException, match="the worker ended while it processed this request"):
            service.run({"exit": True})
        assert service.run({}) == "well"


def test_a_request_that_takes_too_long_is_a_504_and_the_service_continues(service: Webservice) -> None:
    response = Client(service).request(json.dumps({"sleep": 60}))
    assert response.status == 504
    listed = service.workspace.connection.get(f"/api/services/{service.name}/requests", limit=10)
    assert [entry["status"] for entry in listed if entry["id"] == response.headers["x-request-id"]] == [504]
    assert "longer than 2 s" in response.text
    assert service.run({}) == "well"
    log = service.get_logs()
    assert "longer than 2 s: restarting this worker" in log
    assert "in run" in log  # the stack of the request


def test_an_overloaded_service_returns_503_and_still_reports_its_health(service: Webservice) -> None:
    for _ in range(3):  # teaches the worker that requests are slow
        service.run({"sleep": 0.1})
    address = urlsplit(service.scoring_uri)
    body = b'{"sleep": 0.5}'
    request = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    clients = [socket.create_connection((address.hostname, address.port), timeout=30) for _ in range(8)]
    try:
        for client in clients:
            client.sendall(request)
        assert Client(service).request(path="/healthz", method="GET").status == 200
        responses = [client.recv(65536) for client in clients]
    finally:
        for client in clients:
            client.close()
    rejected = [response for response in responses if response.startswith(b"HTTP/1.1 503")]
    assert sum(response.startswith(b"HTTP/1.1 200") for response in responses) >= 2
    assert len(rejected) >= 1
    assert all(b"retry-after: 1" in response for response in rejected)
    assert service.stats()["turned_away"] == len(rejected)


def test_a_body_of_a_gigabyte_is_rejected_before_it_is_read(service: Webservice) -> None:
    address = urlsplit(service.scoring_uri)
    for head in (b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"):
        with socket.create_connection((address.hostname, address.port), timeout=30) as client:
            client.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
            piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            try:
                for _ in range(8 if head.startswith(b"Transfer") else 1):
                    client.sendall(piece)
            except OSError:  # the service closes the connection
                pass
            assert client.recv(65536).startswith(b"HTTP/1.1 413")
    assert service.run({}) == "well"


def test_too_many_large_bodies_are_rejected_with_503(service: Webservice) -> None:
    address = urlsplit(service.scoring_uri)
    request = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n{"
    with socket.create_connection((address.hostname, address.port), timeout=30) as first:
        first.sendall(request)
        assert service.run({}) == "well"
        with socket.create_connection((address.hostname, address.port), timeout=30) as second:
            second.sendall(request)
            assert second.recv(65536).startswith(b"HTTP/1.1 503")
        first.sendall(b" " * (900_000 - 2) + b"}")
        assert first.recv(65536).startswith(b"HTTP/1.1 200")


def test_slow_clients_time_out_and_do_not_block_others(service: Webservice) -> None:
    address = urlsplit(service.scoring_uri)
    partial_requests = (b"POST /sc", b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    slow = [socket.create_connection((address.hostname, address.port), timeout=30) for _ in partial_requests]
    try:
        for client, partial_request in zip(slow, partial_requests):
            client.sendall(partial_request)
        assert service.run({}) == "well"
        for client in slow:
            assert client.recv(65536).startswith(b"HTTP/1.1 408")
    finally:
        for client in slow:
            client.close()


def test_malformed_http_is_rejected(service: Webservice) -> None:
    address = urlsplit(service.scoring_uri)
    for request in (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
        b"POST /score HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
    ):
        with socket.create_connection((address.hostname, address.port), timeout=30) as client:
            try:
                client.sendall(request)
            except OSError:
                continue
            status = int(client.recv(65536).split(b" ")[1])
            assert status in (400, 431, 505)
    assert service.run({}) == "well"


def test_a_worker_that_crashes_at_every_start_is_restarted_with_backoff(workspace: Workspace, tmp_path: Path) -> None:
    flag = tmp_path / "crash"
    code = (
        f"import os\ndef init():\n    if os.path.exists({str(flag)!r}): os._exit(7)\n"
        "def run(text): return os._exit(7) if text == 'die' else 1\n"
    )
    service = deploy_service(workspace, tmp_path, code)
    flag.touch()
    with pytest.raises(WebserviceException):
        service.run("die")

    def restarts() -> int:
        return int(service_view(service)["versions"][0]["workers"][0]["restarts"])

    def state() -> str:
        service.update_deployment_state()
        return service.state

    eventually(lambda: restarts() >= 3, "the worker has been restarted repeatedly", 60)
    eventually(lambda: state() == "Unhealthy", "the service is unhealthy", 60)
    flag.unlink()
    eventually(lambda: state() == "Healthy", "the service is healthy again", 60)
    assert service.run("x") == 1
    service.delete()
