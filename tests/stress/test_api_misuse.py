"""Invalid requests: each gets a machine-readable error, and the yard keeps working."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Run, Workspace
from runyard.errors import RunNotFound, UserErrorException
from support import with_this_python, yard_pid


def send_request(home: Path, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Any:
    """Send one raw request and return (status, response)."""
    all_headers = {"Host": "yard", "Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in all_headers.items()) + "\r\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(home / "yard.sock"))
        connection.sendall(head.encode() + body)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    first, _, rest = answer.partition(b"\r\n")
    return int(first.split()[1]), rest.partition(b"\r\n\r\n")[2]


def spec_request(spec: bytes) -> bytes:
    return b'{"run_id": "a", "experiment": "a", "snapshot_id": "a", "spec": ' + spec + b"}"


def is_problem(answered: tuple[int, bytes], *statuses: int) -> dict[str, Any]:
    status, body = answered
    assert status in statuses, (status, body[:300])
    problem = json.loads(body)
    assert set(problem) - {"position"} == {"code", "message", "hint", "facts"}, problem
    assert problem["message"]
    assert "Traceback" not in problem["message"]
    return problem


@pytest.fixture
def yard(home: Path, workspace: Workspace) -> Path:
    workspace.connection.get("/api/health")
    return home


@pytest.fixture
def run(experiment: Experiment) -> Run:
    run = experiment.start_logging(snapshot_directory=None)
    run.complete()
    return run


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/api/runs", b"{"),
        ("POST", "/api/runs", b""),
        ("POST", "/api/runs", b"null"),
        ("POST", "/api/runs", b"[]"),
        ("POST", "/api/runs", b'"text"'),
        ("POST", "/api/runs", b"\xff\xfe\x00"),
        ("POST", "/api/runs", b'{"run_id": 7, "experiment": [], "spec": "x", "snapshot_id": {}}'),
        ("POST", "/api/runs", b'{"run_id": "a", "experiment": "a", "spec": {}, "snapshot_id": "a"}'),
        ("POST", "/api/runs", b'{"run_id": "../x", "experiment": "a", "spec": {"script": "a"}, "snapshot_id": "a"}'),
        ("POST", "/api/runs", b'{"run_id": "a", "experiment": "a", "spec": {"script": 5}, "snapshot_id": "a"}'),
        (
            "POST",
            "/api/runs",
            b'{"run_id": "a", "experiment": "a", "spec": {"script": "a", "resources": 3}, "snapshot_id": "a"}',
        ),
        (
            "POST",
            "/api/runs",
            b'{"run_id": "a", "experiment": "a", "spec": {"script": "a", "arguments": 3}, "snapshot_id": "a"}',
        ),
        ("POST", "/api/runs", b'{"run_id": "a", "experiment": "a", "spec": {"nothing": 1}, "snapshot_id": "a"}'),
        ("POST", "/api/runs/from-folder", b'{"run_id": "a", "experiment": "a", "spec": {}, "source_directory": "/"}'),
        (
            "POST",
            "/api/runs/from-folder",
            b'{"run_id": "a", "experiment": "a", "spec": {"script": "a"}, "source_directory": "/no/such"}',
        ),
        ("POST", "/api/runs/begin", b'{"run_id": "a", "experiment": "a", "parent_id": "nobody"}'),
        ("POST", "/api/runs/begin", b'{"run_id": "a/../b", "experiment": "a"}'),
        ("POST", "/api/metrics", b'{"run_ids": ["nobody"]}'),
        ("POST", "/api/metrics", b'{"run_ids": "nobody"}'),
        ("POST", "/api/snapshots", b'{"manifest": "!!!"}'),
        ("POST", "/api/snapshots", b'{"manifest": "bm90IGpzb24="}'),
        ("POST", "/api/snapshots", b'{"manifest": "a"}'),
        ("POST", "/api/snapshots", '{"manifest": "\u00fc"}'.encode()),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": ".."}'),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": ""}'),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": "a\\u0000"}'),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": "' + b"x" * 300 + b'"}'),
        ("POST", "/api/runs/begin", b'{"run_id": "' + b"r" * 300 + b'", "experiment": "a"}'),
        ("GET", "/api/runs/" + "r" * 300, b""),
        ("GET", f"/api/runs/table?query={'(' * 500}a{')' * 500}", b""),
        ("GET", f"/api/runs/table?query={'not%20' * 2000}a", b""),
        ("POST", "/api/runs", b"[" * 100_000),
        ("POST", "/api/runs", spec_request(b'{"script": null}')),
        ("POST", "/api/runs", spec_request(b'{"script": "a", "launch": {"kind": "magic"}}')),
        ("POST", "/api/runs", spec_request(b'{"script": "a", "launch": 7}')),
        ("POST", "/api/runs", spec_request(b'{"script": "a", "environment": {"user_managed": "yes"}}')),
        ("POST", "/api/runs", spec_request(b'{"script": "a", "no_effect": ' + b"[" * 500 + b"]" * 500 + b"}")),
        ("POST", "/api/sweeps", b'{"run_id": "a", "experiment": "a", "spec": {}, "snapshot_id": "a"}'),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": "../../etc/passwd"}'),
        ("POST", "/api/snapshots", b'{"manifest": "e30=", "pack": "nothing.pack"}'),
        ("GET", "/api/snapshots/nothing/zip", b""),
        ("GET", "/api/snapshots/..%2f..%2fyard.db/zip", b""),
        ("GET", "/api/runs?tags=%5B1%5D", b""),
        ("GET", "/api/runs?tags=%7B", b""),
        ("GET", "/api/runs?status=Sleeping", b""),
        ("GET", "/api/runs?limit=many", b""),
        ("GET", "/api/runs/nobody", b""),
        ("GET", "/api/runs/nobody/follow", b""),
        ("GET", "/api/runs/nobody/summary", b""),
        ("GET", "/api/runs/nobody/files", b""),
        ("GET", "/api/runs/nobody/files/outputs/x", b""),
        ("PUT", "/api/runs/nobody/files/outputs/x", b"x"),
        ("GET", "/api/runs/nobody/metrics/loss", b""),
        ("POST", "/api/runs/nobody/cancel", b""),
        ("POST", "/api/runs/nobody/complete", b""),
        ("POST", "/api/runs/nobody/fail", b"{}"),
        ("PATCH", "/api/runs/nobody/tags", b'{"set": {"a": "b"}}'),
        ("PATCH", "/api/runs/nobody/properties", b'{"set": {"a": "b"}}'),
        ("GET", "/api/computes/nobody", b""),
        ("POST", "/api/environments/prune", b'{"keys": 7}'),
        ("GET", "/api/environments/registered/nobody", b""),
        ("GET", "/api", b""),
        ("GET", "/assets/nothing.js", b""),
        ("GET", "/api/runs/table?sort=colour", b""),
        ("GET", "/api/runs/table?limit=many", b""),
        ("GET", "/api/runs/complete?at=x", b""),
        ("GET", "/api/live?after=x", b""),
        ("GET", "/api/runs/nobody/live", b""),
        ("POST", "/api/charts", b"{}"),
        ("POST", "/api/charts", b'{"series": [{"run_id": "nobody", "name": "x"}]}'),
        ("POST", "/api/charts", b'{"series": [], "after": [1]}'),
        ("POST", "/api/charts", b'{"series": [{"run_id": "nobody"}], "axis": "depth"}'),
        ("GET", "/api/runs/nobody/series", b""),
        ("GET", "/api/runs/nobody/system", b""),
        ("GET", "/api/runs/nobody/logs", b""),
        ("GET", "/api/runs/nobody/logs/x?from=y", b""),
        ("GET", "/api/runs/nobody/logs/x/search?text=a", b""),
        ("GET", "/api/runs/nobody/logs/x/search", b""),
        ("GET", "/api/runs/nobody/files.zip", b""),
        ("GET", "/api/runs/nobody/code", b""),
        ("GET", "/api/runs/nobody/code/train.py", b""),
        ("GET", "/api/diff/code?a=nobody&b=nobody", b""),
        ("GET", "/api/diff/code?a=nobody", b""),
        ("GET", "/api/diff/environment?a=nobody&b=nobody", b""),
        ("GET", "/api/runs/nobody/environment", b""),
        ("GET", "/api/runs/nobody/plan", b""),
        ("GET", "/api/runs/nobody/timeline", b""),
        ("POST", "/api/runs/nobody/rerun", b""),
        ("POST", "/api/studio", b'{"host": "203.0.113.7", "port": 1}'),
        ("GET", "/api/nothing", b""),
        ("GET", "/api/../../etc/passwd", b""),
        ("DELETE", "/api/runs", b""),
        ("PUT", "/api/health", b"{}"),
    ],
)
def test_an_invalid_request_gets_an_error(yard: Path, method: str, target: str, body: bytes) -> None:
    pid = yard_pid(yard)
    before = len(Workspace().connection.get("/api/runs")["runs"])
    headers = {"Content-Type": "application/json"} if body else {}
    is_problem(send_request(yard, method, target, body, headers), 400, 404, 405, 409, 422)
    assert yard_pid(yard) == pid
    assert len(Workspace().connection.get("/api/runs")["runs"]) == before


@pytest.mark.parametrize("path", ["runs/unknown", "models/unknown", "services/unknown"])
def test_an_unknown_path_is_not_found(yard: Path, path: str) -> None:
    assert "unknown" in is_problem(send_request(yard, "GET", f"/api/{path}"), 404)["message"]


@pytest.mark.parametrize(
    "query",
    [
        "files/..%2f..%2fyard.db",
        "files/azureml-logs/..%2forder.json",
        "files/azureml-logs%2f..%2f..%2f..%2fyard.db",
        "files/logs/../../../yard.db",
        "files/%2fetc%2fpasswd",
        "files//etc/passwd",
        "files/outputs/%00",
        "files/azureml-logs/%00",
        "files/" + "x" * 5000,
        "follow?after=a:b",
        "follow?after=:::",
        "follow?after=70_driver_log.txt:-5x",
        "metrics/loss?after=x",
    ],
)
def test_no_path_leads_out_of_a_run(yard: Path, run: Run, query: str) -> None:
    problem = is_problem(send_request(yard, "GET", f"/api/runs/{run.id}/{query}"), 400, 404, 422)
    assert "SQLite format" not in str(problem)


def test_extreme_numbers_in_queries_are_accepted(yard: Path, run: Run) -> None:
    run.log_list("loss", [0.5, 0.25, 0.125])
    for query in ("after=-3", "limit=0", "limit=-1", "most=0", "most=-7", "after=99999999999", "most=1"):
        status, body = send_request(yard, "GET", f"/api/runs/{run.id}/metrics/loss?{query}")
        assert status in (200, 400, 422), (query, body)
    for query in ("limit=0", "limit=-1", "limit=99999999999999999999999", "before=-1", "before=0"):
        status, body = send_request(yard, "GET", f"/api/runs?{query}")
        assert status in (200, 400, 422), (query, body)
        json.loads(body)


@pytest.mark.parametrize("name", ["..", "../up", "a/../../b", "/abs", "", ".", "nul\0"])
def test_a_file_cannot_be_uploaded_to_outside_of_its_run(run: Run, home: Path, name: str, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_text("x")
    with pytest.raises(UserErrorException):
        run.upload_file(name, str(source))
    assert run.get_file_names() == []
    assert not [path for path in home.iterdir() if path.name.startswith("tmp")]


@pytest.mark.parametrize("run_id", ["a/b", "..", "../health", "a?b", "a#b", "a%2fb", " ", "ü", "x" * 3000, "a\nb"])
def test_an_invalid_run_id_is_not_found(experiment: Experiment, run_id: str) -> None:
    with pytest.raises(RunNotFound):
        Run(experiment, run_id)


def test_a_big_body_is_refused_before_it_is_read(yard: Path) -> None:
    problem = is_problem(
        send_request(
            yard, "POST", "/api/runs", b"{", {"Content-Type": "application/json", "Content-Length": str(10**12)}
        ),
        413,
    )
    assert "GB" in problem["message"]


def test_an_incomplete_request_has_no_effect(yard: Path, run: Run) -> None:
    for target in (f"/api/runs/{run.id}/files/outputs/half", "/api/runs"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(yard / "yard.sock"))
            method = "PUT" if "files" in target else "POST"
            connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: yard\r\nContent-Length: 1000\r\n\r\nhalf".encode())
    assert run.get_file_names() == []
    assert not [path for path in yard.iterdir() if path.name.startswith("tmp")]


def test_a_thousand_tags_and_very_long_ones_come_back(run: Run, experiment: Experiment) -> None:
    tags: dict[str, Any] = {f"tag {number} ü'\"\n": "v" * 50 for number in range(1000)}
    tags["k" * 10_000] = "v" * 1_000_000
    tags[""] = ""
    run.set_tags(tags)
    assert run.get_tags() == tags
    assert [match.id for match in experiment.get_runs(tags={"tag 7 ü'\"\n": "v" * 50})] == [run.id]
    run.remove_tags(list(tags))
    assert run.get_tags() == {}


def test_text_that_is_not_unicode_is_a_clear_error(run: Run, experiment: Experiment, project) -> None:
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(UserErrorException):
        run.tag(odd, "x")
    submitted = experiment.submit(
        with_this_python(project(train="import os, sys\nprint(os.fsencode(sys.argv[1]))"), arguments=[odd])
    )
    submitted.wait_for_completion()
    assert "caf\\xe9" in submitted.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def test_an_invalid_pack_is_refused(yard: Path) -> None:
    (yard / "snapshots" / "incoming").mkdir(parents=True, exist_ok=True)
    (yard / "snapshots" / "incoming" / "evil.pack").write_bytes(b"\0" * 100)
    body = json.dumps({"manifest": base64.b64encode(b"{}").decode(), "pack": "evil.pack"}).encode()
    is_problem(send_request(yard, "POST", "/api/snapshots", body, {"Content-Type": "application/json"}), 400, 409, 422)


@pytest.mark.parametrize("name", ["Host", "Origin", "Referer", "Cookie", "Range", "If-Range", "Accept", "Content-Type"])
@pytest.mark.parametrize("value", ["[", "[::1", "a:b:c", "%", "\x7f", "http://[", "bytes=9-1", "bytes=" + "0-0," * 500])
def test_malformed_headers_are_no_error_of_the_yard(yard: Path, run: Run, name: str, value: str) -> None:
    for target in ("/api/health", "/api/nothing", "/runs", "/api/runs/", "/api/2.0/mlflow/nothing"):
        status, _ = send_request(yard, "GET", target, headers={name: value})
        assert status < 500, target


@pytest.mark.parametrize(
    "script", ["../outside.py", "/etc/hostname", "", ".", "sub/../../outside.py", "nothing.py", "a\0b"]
)
def test_a_script_outside_of_its_folder_is_refused(yard: Path, tmp_path: Path, script: str) -> None:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "train.py").write_text("print('on')")
    (tmp_path / "outside.py").write_text("print('outside')")
    for path in ("/api/runs/from-folder", "/api/runs"):
        request = {"run_id": "a", "experiment": "a", "spec": {"script": script}, "source_directory": str(folder)}
        body = json.dumps(request).encode()
        problem = is_problem(send_request(yard, "POST", path, body, {"Content-Type": "application/json"}), 400)
        assert "script" in problem["message"]


@pytest.mark.parametrize("folder", ["relative", "", "/no/such\0folder", "/" + "x" * 5000])
def test_an_unusable_folder_is_refused(yard: Path, folder: str) -> None:
    body = json.dumps({"run_id": "a", "experiment": "a", "spec": {"script": "a"}, "source_directory": folder}).encode()
    answered = send_request(yard, "POST", "/api/runs/from-folder", body, {"Content-Type": "application/json"})
    is_problem(answered, 400, 409)


def test_a_long_experiment_name_has_runs(workspace: Workspace, project) -> None:
    run = Experiment(workspace, "e" * 255).submit(with_this_python(project(train="print('on')")))
    assert run.wait_for_completion()["status"] == "Completed"
