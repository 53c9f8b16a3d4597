"""Server-sent events of all runs and of one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runyard import Experiment, Workspace
from runyard.client.connection import Connection
from support import with_this_python

Events = Iterator[tuple[str, Any]]
STEPS = """
import os, sys, time
from runyard import Run
run = Run.get_context()
run.log("loss", 1.0)
print("first", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
run.log("loss", 0.5)
print("second", flush=True)
open("outputs/model.txt", "w").write("x")
"""


def until(events: Events, name: str, predicate: Any = lambda data: True) -> Any:
    """The data of the first matching event; the stream breaks if the server is silent for too long."""
    return next(data for event, data in events if event == name and predicate(data))


def test_table_events_follow_a_run_from_start_to_end(
    workspace: Workspace, experiment: Experiment, project: Any, tmp_path: Path
) -> None:
    connection = workspace.connection
    events = connection.events("/api/live")
    assert until(events, "hello")["version"] == connection.get("/api/runs/table", limit=0)["version"]
    assert until(events, "computes")[0]["name"] == "local"
    go = tmp_path / "go"
    run = experiment.submit(with_this_python(project(train=STEPS), arguments=[str(go)]))

    def next_row(**values: Any) -> Any:
        return until(
            events,
            "run",
            lambda row: row["run_id"] == run.id and all(row[key] == value for key, value in values.items()),
        )

    row = next_row(status="Running")
    assert row["ended_at"] is None
    if row["metrics"] != {"loss": 1.0}:  # on a busy machine both changes may be in one event
        assert next_row(metrics={"loss": 1.0})["status"] == "Running"
    go.touch()
    row = next_row(status="Completed")
    assert row["metrics"] == {"loss": 0.5}
    events.close()


def test_a_reconnecting_client_receives_missed_changes(workspace: Workspace, experiment: Experiment) -> None:
    connection = workspace.connection
    version = connection.get("/api/runs/table", limit=0)["version"]
    run = experiment.start_logging(snapshot_directory=None)
    run.complete()
    events = connection.events("/api/live", after=version)
    assert until(events, "run")["run_id"] == run.id
    events.close()
    events = connection.events("/api/live", after=10**12)
    until(events, "reset")
    events.close()


def test_run_events_cover_status_metrics_logs_files_and_end(
    workspace: Workspace, experiment: Experiment, project: Any, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    run = experiment.submit(with_this_python(project(train=STEPS), arguments=[str(go)]))
    events = workspace.connection.events(f"/api/runs/{run.id}/live")
    until(events, "status", lambda view: view["status"] == "Running")
    assert until(events, "metrics") == {"loss": 1}
    until(events, "logs", lambda sizes: sizes.get("70_driver_log.txt") == 6)
    go.touch()
    rest = list(events)
    assert rest[-1][0] == "end"
    assert rest[-1][1]["status"] == "Completed"
    assert {"loss": 2} in [data for name, data in rest if name == "metrics"]
    assert {"70_driver_log.txt": 13} in [data for name, data in rest if name == "logs"]
    assert [data["count"] for name, data in rest if name == "files"][-1] == 3


def test_events_of_an_ended_run_are_sent_immediately(workspace: Workspace, experiment: Experiment) -> None:
    run = experiment.start_logging(snapshot_directory=None)
    run.log("loss", 3)
    run.complete()
    names = [name for name, _ in workspace.connection.events(f"/api/runs/{run.id}/live")]
    assert names == ["status", "metrics", "files", "end"]


def test_a_changed_tag_is_sent(workspace: Workspace, experiment: Experiment) -> None:
    connection: Connection = workspace.connection
    run = experiment.start_logging(snapshot_directory=None)
    events = connection.events("/api/live")
    until(events, "hello")
    run.tag("phase", "warm-up")
    assert until(events, "run", lambda row: row["tags"])["tags"] == {"phase": "warm-up"}
    events.close()
    run.complete()
