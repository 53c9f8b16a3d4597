"""Tracking compared with peers: points until they are on disk, and MLflow's client with both servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.logging_rows import points_per_second
from bench.peers import NotMeasured, Peer, start_peers
from bench.rounds import measure_rounds
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox

_PEERS = [
    ("trackio", "points_trackio.py"),
    ("tensorboardX", "points_tensorboardx.py"),
    ("aim", "points_aim.py"),
    ("mlflow", "points_mlflow.py"),
]


def durable_points(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    points = size.scaled(500_000)
    ours = points_per_second(sandbox, points)
    with start_peers(_PEERS if size.peers else [], sandbox.folder("peers")) as (peers, notes):
        contenders = {"ours": ours, **{name: peer.measure for name, peer in peers.items()}}
        rates = measure_rounds(contenders, min(size.rounds, 9))
    yield Row(
        "points until they are on disk and readable",
        rates["ours"],
        goal=Goal(500_000, at_least=True),
        unit="/s",
        peers={name: rates[name] for name in peers},
        notes=tuple(notes),
    )


def mlflow_client(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    """Compare the servers with the same client and calls; both use a SQLite database on the same disk."""
    calls = "one call of `mlflow.log_metric` to the yard over HTTP"
    points = "`log_batch` to the yard, 1,000 points per call"
    if not size.peers:
        yield not_measured(calls, "it needs MLflow")
        return
    baseline = "to MLflow's server"
    yield _compare_servers(sandbox, size, "calls", calls, baseline, Goal(1.0, relative=True), "s")
    yield _compare_servers(sandbox, size, "points", points, baseline, Goal(1.0, relative=True, at_least=True), "/s")


def _compare_servers(sandbox: Sandbox, size: Size, kind: str, title: str, baseline: str, goal: Goal, unit: str) -> Row:
    try:
        with ExitStack() as stack:
            peers = []
            for name in ("ours", "theirs"):
                folder = sandbox.folder(f"{kind}-{name}")
                (folder / "kind").write_text(kind)
                if name == "ours":
                    _write_address(sandbox, folder)
                peers.append(Peer("mlflow", "http_mlflow.py", folder))
                stack.callback(peers[-1].close)
            times = measure_rounds({"ours": peers[0].measure, "theirs": peers[1].measure}, size.rounds)
    except NotMeasured as reason:
        return not_measured(title, str(reason))
    return Row(title, times["ours"], (baseline, times["theirs"]), goal, unit=unit)


def _write_address(sandbox: Sandbox, folder: Path) -> None:
    address = sandbox.experiment("mlflow").workspace.connection.post("/api/studio", {})
    values = {"url": address["url"].rstrip("/"), "token": address["token"]}
    (folder / "where.json").write_text(json.dumps(values))
