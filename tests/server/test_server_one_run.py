"""One run over the API, as its page asks for it: a real one, in a real yard."""

from __future__ import annotations

import io
import json
import socket
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runyard import Experiment, Run, Workspace
from runyard.client.connection import Connection
from runyard.errors import RunNotFound, SnapshotException, UserErrorException
from runyard.wire.points import decode_points
from support import with_this_python

TRAIN = """
import os
from pathlib import Path
from runyard import Run
run = Run.get_context()
for step in range(50):
    run.log("loss", 1 / (step + 1), step=step)
run.log_row("sample", a=1, b="x")
run.tag("team", "vision")
print("a line\\nERROR: a bad line\\nthe last line")
Path("outputs/page.html").write_text("<script>alert(1)</script>")
Path("outputs/model.bin").write_bytes(bytes(range(256)) * 10)
"""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def raw(connection: Connection, target: str, **headers: str) -> Answer:
    """With its headers, which the client does not show."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(connection.socket))
        said = {"Host": "yard", "Connection": "close", **headers}
        head = f"GET {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in said.items()) + "\r\n"
        stream.sendall(head.encode())
        data = b""
        while piece := stream.recv(1 << 16):
            data += piece
    first, _, body = data.partition(b"\r\n\r\n")
    lines = first.decode().split("\r\n")
    found = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return Answer(int(lines[0].split()[1]), found, body)


@pytest.fixture(scope="module")
def done(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("page")
    (folder / "train.py").write_text(TRAIN)
    (folder / "data").mkdir()
    (folder / "data" / "notes.md").write_text("first\n")
    config = with_this_python(folder, arguments=["--lr", 0.1, "--fast"])
    config.run_config.environment.environment_variables = {"MY_API_KEY": "hunter2", "PLAIN": "seen"}
    run = Experiment(Workspace(home=shared_home), "one-run").submit(config)
    run.wait_for_completion()
    return run


@pytest.fixture
def ask(done: Run) -> Connection:
    connection: Connection = done.experiment.workspace.connection
    return connection


def test_the_table_has_it_with_parameters_tags_and_last_metrics(ask: Connection, done: Run) -> None:
    page = ask.get("/api/runs/table", query="experiment:one-run lr=0.1 team:vision loss<0.1", sort="-metrics.loss")
    (row,) = page["rows"]
    assert row["run_id"] == done.id
    assert row["params"] == {"lr": 0.1, "fast": "true"}
    assert row["metrics"] == {"loss": 0.02}
    assert row["duration_s"] > 0
    assert page["total"] == 1


def test_a_wrong_query_is_told_with_its_place(ask: Connection) -> None:
    answer = raw(ask, "/api/runs/table?query=lr%3E")
    problem = json.loads(answer.body)
    assert answer.status == 400
    assert problem["position"] == 3
    with pytest.raises(UserErrorException, match="a value was expected"):
        ask.get("/api/runs/table", query="lr>")


def test_completion_and_fields_know_it(ask: Connection, done: Run) -> None:
    found = ask.get("/api/runs/complete", query="experiment:one", at=14)
    assert found["from"] == 11
    assert found["to"] == 14
    assert "one-run" in [option["text"] for option in found["options"]]
    fields = {field["name"]: field["kind"] for field in ask.get("/api/runs/fields")["fields"]}
    assert fields["metrics.loss"] == "number"


def test_its_series_and_their_points(ask: Connection, done: Run) -> None:
    series = {one["name"]: one for one in ask.get(f"/api/runs/{done.id}/series")}
    assert series["loss"] == {"name": "loss", "kind": "scalar", "count": 50, "last": 0.02, "min": 0.02, "max": 1.0}
    assert series["sample"]["kind"] == "row"
    values = ask.get(f"/api/runs/{done.id}/values/sample")
    assert values["values"][0]["value"] == {"a": [1], "b": ["x"]}
    wanted = {"series": [{"run_id": done.id, "name": "loss"}], "axis": "step", "from": 10, "to": 12}
    (window,) = charts(ask, wanted)
    assert list(window.steps) == [9, 10, 11, 12, 13]
    (news,) = charts(ask, {"series": wanted["series"], "after": [48]})
    assert (list(news.steps), news.next) == ([48, 49], 50)
    with pytest.raises(RunNotFound):
        charts(ask, {"series": [{"run_id": "nobody", "name": "loss"}]})


def charts(ask: Connection, query: dict[str, Any]) -> list[Any]:
    data = ask._send("POST", "/api/charts", json.dumps(query).encode(), {"Content-Type": "application/json"}).read()
    (count,) = struct.unpack_from("<I", data)
    found, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        found.append(decode_points(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return found


def test_its_logs_by_the_byte_and_searched(ask: Connection, done: Run) -> None:
    logs = {log["name"]: log for log in ask.get(f"/api/runs/{done.id}/logs")}
    driver = logs["70_driver_log.txt"]
    assert (driver["rank"], driver["role"], driver["node"]) == (0, "rank", "local")
    assert logs["20_environment_log.txt"]["role"] == "environment"
    tail = raw(ask, f"/api/runs/{done.id}/logs/70_driver_log.txt?from=-14")
    assert tail.body == b"the last line\n"
    assert tail.headers["x-size"] == str(driver["size"])
    assert tail.headers["x-from"] == str(driver["size"] - 14)
    assert ask.read(f"/api/runs/{done.id}/logs/70_driver_log.txt", limit=6) == b"a line"
    (found,) = ask.get(f"/api/runs/{done.id}/logs/70_driver_log.txt/search", text="error")
    assert found == {"offset": 7, "line": 2, "text": "ERROR: a bad line"}
    with pytest.raises(UserErrorException, match="has no log"):
        ask.read(f"/api/runs/{done.id}/logs/order.json")


def test_what_a_script_wrote_is_shown_and_never_run(ask: Connection, done: Run) -> None:
    for inline in ("", "?inline=1"):
        answer = raw(ask, f"/api/runs/{done.id}/files/outputs/page.html{inline}")
        assert answer.body == b"<script>alert(1)</script>"
        assert "html" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox;")
        assert answer.headers["content-disposition"].startswith("inline" if inline else "attachment")


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-3", 206, bytes([0, 1, 2, 3])),
        ("bytes=-2", 206, bytes([254, 255])),
        ("bytes=2558-", 206, bytes([254, 255])),
        ("bytes=9999-", 416, b""),
        ("lines=1-2", 200, bytes(range(256)) * 10),
    ],
)
def test_a_range_of_a_file(ask: Connection, done: Run, asked: str, status: int, part: bytes) -> None:
    answer = raw(ask, f"/api/runs/{done.id}/files/outputs/model.bin", Range=asked)
    assert (answer.status, answer.body) == (status, part)


def test_all_files_as_one_zip(ask: Connection, done: Run) -> None:
    with zipfile.ZipFile(io.BytesIO(ask.read(f"/api/runs/{done.id}/files.zip"))) as archive:
        assert archive.testzip() is None
        assert archive.read("outputs/model.bin") == bytes(range(256)) * 10
        assert set(archive.namelist()) == {file["name"] for file in ask.get(f"/api/runs/{done.id}/files")}


def test_its_code_as_it_was_and_beside_another_runs(ask: Connection, done: Run, project: Any) -> None:
    tree = {entry["path"]: entry for entry in ask.get(f"/api/runs/{done.id}/code")}
    assert tree["train.py"] == {"path": "train.py", "size": len(TRAIN), "mode": "644"}
    assert ask.read(f"/api/runs/{done.id}/code/data/notes.md") == b"first\n"
    with pytest.raises(SnapshotException, match="there is no file"):
        ask.read(f"/api/runs/{done.id}/code/../train.py")
    folder = project(train=TRAIN.replace("range(50)", "range(60)"), extra="pass\n")
    other = done.experiment.submit(with_this_python(folder))
    other.wait_for_completion()
    changes = {change["path"]: change for change in ask.get("/api/diff/code", a=done.id, b=other.id)}
    assert {path: change["change"] for path, change in changes.items()} == {
        "data/notes.md": "removed",
        "extra.py": "added",
        "train.py": "changed",
    }
    assert "-for step in range(50):\n+for step in range(60):" in changes["train.py"]["diff"]
    assert ask.get("/api/diff/code", a=done.id, b=done.id) == []
    assert ask.get("/api/diff/environment", a=done.id, b=other.id) == []


def test_its_environment_its_processes_and_where_its_time_went(ask: Connection, done: Run) -> None:
    environment = ask.get(f"/api/runs/{done.id}/environment")
    assert environment["lock"].startswith("# Python 3.")
    assert "orjson==" in environment["lock"]
    (process,) = ask.get(f"/api/runs/{done.id}/plan")
    assert process["argv"][1:] == ["train.py", "--lr", "0.1", "--fast"]
    assert process["variables"]["PLAIN"] == "seen"
    assert process["variables"]["MY_API_KEY"] == "••••••"
    assert process["log"] == "70_driver_log.txt"
    assert "hunter2" not in json.dumps(process)
    phases = ask.get(f"/api/runs/{done.id}/timeline")
    assert [phase["phase"] for phase in phases][:2] == ["snapshot", "environment"]
    assert [phase["phase"] for phase in phases][-2:] == ["run", "finalize"]
    assert all(before["to"] == after["from"] for before, after in zip(phases[1:], phases[2:]))
    assert phases[0]["to"] <= phases[1]["from"]


def test_it_can_be_run_again(ask: Connection, done: Run) -> None:
    again = ask.post(f"/api/runs/{done.id}/rerun")
    assert again["run_id"] != done.id
    assert again["properties"]["runyard.rerun_of"] == done.id
    run = Run(done.experiment, again["run_id"])
    run.wait_for_completion()
    assert run.get_metrics("loss")["loss"][-1] == 0.02
    interactive = done.experiment.start_logging(snapshot_directory=None)
    interactive.complete()
    with pytest.raises(UserErrorException, match="was not submitted"):
        ask.post(f"/api/runs/{interactive.id}/rerun")
