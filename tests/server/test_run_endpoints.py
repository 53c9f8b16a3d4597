"""The endpoints of one run, tested with a run in a real yard."""

from __future__ import annotations

import base64
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
from runyard.snapshots.freeze import freeze
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


class RawResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def raw(connection: Connection, target: str, **headers: str) -> RawResponse:
    """Send a GET request and return the response with its headers, which the client hides."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(connection.socket))
        fields = {"Host": "yard", "Connection": "close", **headers}
        head = f"GET {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        stream.sendall(head.encode())
        data = b""
        while piece := stream.recv(1 << 16):
            data += piece
    first, _, body = data.partition(b"\r\n\r\n")
    lines = first.decode().split("\r\n")
    response_headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return RawResponse(int(lines[0].split()[1]), response_headers, body)


@pytest.fixture(scope="module")
def run(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
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
def connection(run: Run) -> Connection:
    connection: Connection = run.experiment.workspace.connection
    return connection


def test_the_table_row_has_parameters_tags_and_last_metrics(connection: Connection, run: Run) -> None:
    page = connection.get(
        "/api/runs/table", query="experiment:one-run lr=0.1 team:vision loss<0.1", sort="-metrics.loss"
    )
    (row,) = page["rows"]
    assert row["run_id"] == run.id
    assert row["params"] == {"lr": 0.1, "fast": "true"}
    assert row["metrics"] == {"loss": 0.02}
    assert row["duration_s"] > 0
    assert page["total"] == 1


def test_an_invalid_query_is_an_error_with_a_position(connection: Connection) -> None:
    response = raw(connection, "/api/runs/table?query=lr%3E")
    error = json.loads(response.body)
    assert response.status == 400
    assert error["position"] == 3
    with pytest.raises(UserErrorException, match="expected a value"):
        connection.get("/api/runs/table", query="lr>")


def test_completion_and_fields_include_the_run(connection: Connection, run: Run) -> None:
    completion = connection.get("/api/runs/complete", query="experiment:one", at=14)
    assert completion["from"] == 11
    assert completion["to"] == 14
    assert "one-run" in [option["text"] for option in completion["options"]]
    fields = {field["name"]: field["kind"] for field in connection.get("/api/runs/fields")["fields"]}
    assert fields["metrics.loss"] == "number"


def test_series_and_their_points(connection: Connection, run: Run) -> None:
    series = {item["name"]: item for item in connection.get(f"/api/runs/{run.id}/series")}
    assert series["loss"] == {"name": "loss", "kind": "scalar", "count": 50, "last": 0.02, "min": 0.02, "max": 1.0}
    assert series["sample"]["kind"] == "row"
    values = connection.get(f"/api/runs/{run.id}/values/sample")
    assert values["values"][0]["value"] == {"a": [1], "b": ["x"]}
    query = {"series": [{"run_id": run.id, "name": "loss"}], "axis": "step", "from": 10, "to": 12}
    (window,) = charts(connection, query)
    assert list(window.steps) == [9, 10, 11, 12, 13]
    (update,) = charts(connection, {"series": query["series"], "after": [48]})
    assert (list(update.steps), update.next) == ([48, 49], 50)
    with pytest.raises(RunNotFound):
        charts(connection, {"series": [{"run_id": "nobody", "name": "loss"}]})


def charts(connection: Connection, query: dict[str, Any]) -> list[Any]:
    data = connection._send(
        "POST", "/api/charts", json.dumps(query).encode(), {"Content-Type": "application/json"}
    ).read()
    (count,) = struct.unpack_from("<I", data)
    series, offset = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, offset)
        series.append(decode_points(data[offset + 4 : offset + 4 + length]))
        offset += 4 + length
    return series


def test_parts_of_logs_and_search(connection: Connection, run: Run) -> None:
    logs = {log["name"]: log for log in connection.get(f"/api/runs/{run.id}/logs")}
    driver = logs["70_driver_log.txt"]
    assert (driver["rank"], driver["role"], driver["node"]) == (0, "rank", "local")
    assert logs["20_environment_log.txt"]["role"] == "environment"
    tail = raw(connection, f"/api/runs/{run.id}/logs/70_driver_log.txt?from=-14")
    assert tail.body == b"the last line\n"
    assert tail.headers["x-size"] == str(driver["size"])
    assert tail.headers["x-from"] == str(driver["size"] - 14)
    assert connection.read(f"/api/runs/{run.id}/logs/70_driver_log.txt", limit=6) == b"a line"
    (match,) = connection.get(f"/api/runs/{run.id}/logs/70_driver_log.txt/search", text="error")
    assert match == {"offset": 7, "line": 2, "text": "ERROR: a bad line"}
    with pytest.raises(UserErrorException, match="has no log"):
        connection.read(f"/api/runs/{run.id}/logs/order.json")


def test_files_of_a_run_are_never_executed_by_a_browser(connection: Connection, run: Run) -> None:
    for inline in ("", "?inline=1"):
        response = raw(connection, f"/api/runs/{run.id}/files/outputs/page.html{inline}")
        assert response.body == b"<script>alert(1)</script>"
        assert "html" not in response.headers["content-type"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-security-policy"].startswith("sandbox;")
        assert response.headers["content-disposition"].startswith("inline" if inline else "attachment")


@pytest.mark.parametrize(
    ("header", "status", "content"),
    [
        ("bytes=0-3", 206, bytes([0, 1, 2, 3])),
        ("bytes=-2", 206, bytes([254, 255])),
        ("bytes=2558-", 206, bytes([254, 255])),
        ("bytes=9999-", 416, b""),
        ("lines=1-2", 400, b"Only support bytes range"),
    ],
)
def test_ranges_of_a_file(connection: Connection, run: Run, header: str, status: int, content: bytes) -> None:
    response = raw(connection, f"/api/runs/{run.id}/files/outputs/model.bin", Range=header)
    assert (response.status, response.body) == (status, content)


def test_all_files_as_a_zip_archive(connection: Connection, run: Run) -> None:
    with zipfile.ZipFile(io.BytesIO(connection.read(f"/api/runs/{run.id}/files.zip"))) as archive:
        assert archive.testzip() is None
        assert archive.read("outputs/model.bin") == bytes(range(256)) * 10
        assert set(archive.namelist()) == {file["name"] for file in connection.get(f"/api/runs/{run.id}/files")}


def test_code_and_its_differences_between_runs(connection: Connection, run: Run, project: Any) -> None:
    tree = {entry["path"]: entry for entry in connection.get(f"/api/runs/{run.id}/code")}
    assert tree["train.py"] == {"path": "train.py", "size": len(TRAIN), "mode": "644"}
    assert connection.read(f"/api/runs/{run.id}/code/data/notes.md") == b"first\n"
    with pytest.raises(SnapshotException, match="there is no file"):
        connection.read(f"/api/runs/{run.id}/code/../train.py")
    folder = project(train=TRAIN.replace("range(50)", "range(60)"), extra="pass\n")
    other = run.experiment.submit(with_this_python(folder))
    other.wait_for_completion()
    changes = {change["path"]: change for change in connection.get("/api/diff/code", a=run.id, b=other.id)}
    assert {path: change["change"] for path, change in changes.items()} == {
        "data/notes.md": "removed",
        "extra.py": "added",
        "train.py": "changed",
    }
    assert "-for step in range(50):\n+for step in range(60):" in changes["train.py"]["diff"]
    assert connection.get("/api/diff/code", a=run.id, b=run.id) == []
    assert connection.get("/api/diff/environment", a=run.id, b=other.id) == []


def test_environment_processes_and_timeline(connection: Connection, run: Run) -> None:
    environment = connection.get(f"/api/runs/{run.id}/environment")
    assert environment["lock"].startswith("# Python 3.")
    assert "orjson==" in environment["lock"]
    (process,) = connection.get(f"/api/runs/{run.id}/plan")
    assert process["argv"][1:] == ["train.py", "--lr", "0.1", "--fast"]
    assert process["variables"]["PLAIN"] == "seen"
    assert process["variables"]["MY_API_KEY"] == "***"
    assert process["log"] == "70_driver_log.txt"
    assert "hunter2" not in json.dumps(process)
    phases = connection.get(f"/api/runs/{run.id}/timeline")
    assert [phase["phase"] for phase in phases][:2] == ["snapshot", "environment"]
    assert [phase["phase"] for phase in phases][-2:] == ["run", "finalize"]
    assert all(before["to"] == after["from"] for before, after in zip(phases[1:], phases[2:]))
    assert phases[0]["to"] <= phases[1]["from"]


def test_a_run_can_be_repeated(connection: Connection, run: Run) -> None:
    again = connection.post(f"/api/runs/{run.id}/rerun")
    assert again["run_id"] != run.id
    assert again["properties"]["runyard.rerun_of"] == run.id
    run = Run(run.experiment, again["run_id"])
    run.wait_for_completion()
    assert run.get_metrics("loss")["loss"][-1] == 0.02
    interactive = run.experiment.start_logging(snapshot_directory=None)
    interactive.complete()
    with pytest.raises(UserErrorException, match="was not submitted"):
        connection.post(f"/api/runs/{interactive.id}/rerun")


def test_two_clients_can_upload_the_same_new_snapshot_at_the_same_time(shared_home: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"print({str(tmp_path)!r})")
    snapshot = freeze(tmp_path, index_folder=tmp_path.with_suffix(".index"), pack_to=tmp_path.with_suffix(".pack"))
    assert snapshot.pack is not None
    manifest = {"manifest": base64.b64encode(snapshot.manifest.to_bytes()).decode()}
    connection = Workspace().connection
    for _ in range(2):  # both are asked for the content, because neither has sent it yet
        assert connection.post("/api/snapshots", manifest)["missing"]
    for _ in range(2):
        with open(snapshot.pack, "rb") as pack:
            stored = connection.upload(f"/api/snapshots/{snapshot.id}/content", pack)
        assert stored["snapshot_id"] == snapshot.id
    assert connection.get(f"/api/snapshots/{snapshot.id}")["there"]
