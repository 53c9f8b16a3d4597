"""What goes wrong with services: said clearly, before anything starts if it can be, and never to the others."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard import InferenceConfig, LocalWebservice, Model, Webservice, Workspace
from runyard.errors import WebserviceException
from service_support import Client, a_factor, a_name, a_script, deployed, service_view, this_python
from support import eventually

pytestmark = pytest.mark.real

MOODY = """
import json, os, sys, time
def init(): pass
def run(text):
    wish = json.loads(text)
    if wish.get('raise'): raise ValueError('the password is hunter2')
    if wish.get('exit'): os._exit(9)
    if wish.get('leave'): sys.exit('bye')
    if wish.get('odd'): return object()
    time.sleep(wish.get('sleep', 0))
    return 'well'
"""


@pytest.fixture
def moody(workspace: Workspace, tmp_path: Path) -> Iterator[Webservice]:
    limits = {"timeout_s": 2, "waiting": 2, "receive_s": 3, "body_mb": 1, "bodies_mb": 1.5}
    service = deployed(workspace, tmp_path, MOODY, limits=limits)
    yield service
    service.delete()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def run(text): return 1\n", r"has no init\(\)"),
        ("def init(): pass\n", r"has no run\(\)"),
        ("x = 1\n", r"has no init\(\) and no run\(\)"),
        ("def init(:\n", "is not valid Python"),
    ],
)
def test_a_script_that_no_service_could_use_is_refused_before_it_travels(
    workspace: Workspace, tmp_path: Path, code: str, said: str
) -> None:
    name = a_name()
    with pytest.raises(WebserviceException, match=said):
        Model.deploy(workspace, name, [], a_script(tmp_path, code), LocalWebservice.deploy_configuration())
    assert name not in workspace.webservices


def test_a_script_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(WebserviceException, match=r"'absent\.py' does not exist"):
        InferenceConfig("absent.py", source_directory=str(tmp_path), environment=this_python())


def test_a_script_whose_functions_are_missing_only_when_it_runs_fails_the_deployment(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "parts.py").write_text("def init(): pass\n")
    code = a_script(tmp_path, "from parts import *\n")
    service = Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match=r"has no function run\(\)"):
        service.wait_for_deployment()
    assert service.state == "Failed"
    service.delete()


def test_a_script_that_cannot_be_imported_says_so_with_its_traceback(workspace: Workspace, tmp_path: Path) -> None:
    code = a_script(tmp_path, "import not_there_at_all\ndef init(): pass\ndef run(text): pass\n")
    service = Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration())
    with pytest.raises(WebserviceException, match="No module named 'not_there_at_all'"):
        service.wait_for_deployment()
    assert "Traceback" in service.get_logs()
    service.delete()


def test_names_ports_and_models_that_cannot_be(workspace: Workspace, tmp_path: Path) -> None:
    """B14.102."""
    code = a_script(tmp_path, "def init(): pass\ndef run(text): return 1\n")
    free = LocalWebservice.deploy_configuration()
    for name in ("ab", "Upper", "ends-", "1st", "a" * 33, "under_score"):
        with pytest.raises(WebserviceException, match="invalid service name"):
            Model.deploy(workspace, name, [], code, free)
    with pytest.raises(WebserviceException, match="nobody-has-this"):
        Model.deploy(workspace, a_name(), ["nobody-has-this"], code, free)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(WebserviceException, match=f"cannot listen on port {port} of 127.0.0.1"):
            Model.deploy(workspace, a_name(), [], code, LocalWebservice.deploy_configuration(port=port))
    service = Model.deploy(workspace, a_name(), [], code, free)
    service.wait_for_deployment()
    with pytest.raises(WebserviceException, match="already exists"):
        Model.deploy(workspace, service.name, [], code, free)
    taken = LocalWebservice.deploy_configuration(port=service.port)
    with pytest.raises(WebserviceException, match=f"used by the service '{service.name}'"):
        Model.deploy(workspace, a_name(), [], code, taken)
    again = Model.deploy(workspace, service.name, [], code, free, overwrite=True)
    again.wait_for_deployment()
    assert again.versions == {2: 100}
    assert again.port == service.port
    again.delete()


def test_a_model_that_is_no_onnx_needs_a_script(workspace: Workspace, tmp_path: Path) -> None:
    model = a_factor(workspace, tmp_path, 1, a_name("model"))
    with pytest.raises(WebserviceException, match="cannot be served without a scoring script"):
        Model.deploy(workspace, a_name(), [model])


def test_a_script_that_raises_is_a_500_with_an_id_and_nothing_more(moody: Webservice) -> None:
    answer = Client(moody).ask(json.dumps({"raise": True}))
    assert answer.status == 500
    said = json.loads(answer.text)["error"]
    assert said["request_id"] == answer.headers["x-request-id"]
    assert "hunter2" not in answer.text
    log = moody.get_logs()
    assert f"request {said['request_id']} failed:" in log
    assert "ValueError: the password is hunter2" in log
    client = Client(moody)
    assert client.ask(json.dumps({"odd": True})).status == 500
    assert client.ask(json.dumps({"leave": True})).status == 500
    assert client.ask("{}").text == '"well"'


def test_a_process_that_ends_is_replaced(moody: Webservice) -> None:
    for _ in range(2):
        with pytest.raises(WebserviceException, match="does not respond"):
            moody.run({"exit": True})
        assert moody.run({}) == "well"


def test_a_call_that_takes_too_long_is_a_504_and_the_service_goes_on(moody: Webservice) -> None:
    answer = Client(moody).ask(json.dumps({"sleep": 60}))
    assert answer.status == 504
    listed = moody.workspace.connection.get(f"/api/services/{moody.name}/requests", limit=10)
    assert [one["status"] for one in listed if one["id"] == answer.headers["x-request-id"]] == [504]
    assert "longer than 2 s" in answer.text
    assert moody.run({}) == "well"
    log = moody.get_logs()
    assert "this worker ends, and another one begins" in log
    assert "in run" in log  # where it was


def test_more_than_it_can_do_is_a_503_and_health_is_still_told(moody: Webservice) -> None:
    for _ in range(3):  # it is slow, and known to be
        moody.run({"sleep": 0.1})
    where = urlsplit(moody.scoring_uri)
    body = b'{"sleep": 0.5}'
    request = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    crowd = [socket.create_connection((where.hostname, where.port), timeout=30) for _ in range(8)]
    try:
        for one in crowd:
            one.sendall(request)
        assert Client(moody).ask(path="/healthz", method="GET").status == 200
        got = [one.recv(65536) for one in crowd]
    finally:
        for one in crowd:
            one.close()
    turned_away = [answer for answer in got if answer.startswith(b"HTTP/1.1 503")]
    assert sum(answer.startswith(b"HTTP/1.1 200") for answer in got) >= 2
    assert len(turned_away) >= 1
    assert all(b"retry-after: 1" in answer for answer in turned_away)
    assert moody.stats()["turned_away"] == len(turned_away)


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(moody: Webservice) -> None:
    where = urlsplit(moody.scoring_uri)
    for head in (b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"):
        with socket.create_connection((where.hostname, where.port), timeout=30) as client:
            client.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
            piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            try:
                for _ in range(8 if head.startswith(b"Transfer") else 1):
                    client.sendall(piece)
            except OSError:  # it hangs up on those who go on
                pass
            assert client.recv(65536).startswith(b"HTTP/1.1 413")
    assert moody.run({}) == "well"


def test_more_large_bodies_than_it_can_hold_are_told_to_come_back(moody: Webservice) -> None:
    where = urlsplit(moody.scoring_uri)
    begun = b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n{"
    with socket.create_connection((where.hostname, where.port), timeout=30) as first:
        first.sendall(begun)
        assert moody.run({}) == "well"
        with socket.create_connection((where.hostname, where.port), timeout=30) as second:
            second.sendall(begun)
            assert second.recv(65536).startswith(b"HTTP/1.1 503")
        first.sendall(b" " * (900_000 - 2) + b"}")
        assert first.recv(65536).startswith(b"HTTP/1.1 200")


def test_slow_clients_are_let_go_and_keep_nobody_waiting(moody: Webservice) -> None:
    where = urlsplit(moody.scoring_uri)
    beginnings = (b"POST /sc", b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    slow = [socket.create_connection((where.hostname, where.port), timeout=30) for _ in beginnings]
    try:
        for client, beginning in zip(slow, beginnings):
            client.sendall(beginning)
        assert moody.run({}) == "well"
        for client in slow:
            assert client.recv(65536).startswith(b"HTTP/1.1 408")
    finally:
        for client in slow:
            client.close()


def test_what_is_no_http_is_refused(moody: Webservice) -> None:
    where = urlsplit(moody.scoring_uri)
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
        b"POST /score HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
    ):
        with socket.create_connection((where.hostname, where.port), timeout=30) as client:
            try:
                client.sendall(garbage)
            except OSError:
                continue
            status = int(client.recv(65536).split(b" ")[1])
            assert status in (400, 431, 505)
    assert moody.run({}) == "well"


def test_a_crash_at_every_start_is_tried_again_with_patience(workspace: Workspace, tmp_path: Path) -> None:
    flag = tmp_path / "crash"
    code = (
        f"import os\ndef init():\n    if os.path.exists({str(flag)!r}): os._exit(7)\n"
        "def run(text): return os._exit(7) if text == 'die' else 1\n"
    )
    service = deployed(workspace, tmp_path, code)
    flag.touch()
    with pytest.raises(WebserviceException):
        service.run("die")

    def restarts() -> int:
        return int(service_view(service)["versions"][0]["workers"][0]["restarts"])

    eventually(lambda: restarts() >= 3, "it is started again and again", 60)
    eventually(lambda: service.state == "Unhealthy" or restarts() < 0, "it is not well", 60)
    flag.unlink()
    eventually(lambda: restarts() >= 0 and service.state == "Healthy", "it comes back", 60)
    assert service.run("x") == 1
    service.delete()
