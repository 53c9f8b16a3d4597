"""Tracking beside others: points until they are on disk, and MLflow's client on its own server and on ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.logging_rows import points_a_second
from bench.peers import NotMeasured, Peer, present
from bench.place import Place
from bench.row import Goal, Row, Size, not_measured
from bench.turns import in_turns

_PEERS = [
    ("trackio", "points_trackio.py"),
    ("tensorboardX", "points_tensorboardx.py"),
    ("aim", "points_aim.py"),
    ("mlflow", "points_mlflow.py"),
]


def durable_points(place: Place, size: Size) -> Iterator[Row]:
    points = size.of(500_000)
    ours = points_a_second(place, points)
    with present(_PEERS if size.peers else [], place.folder("peers")) as (peers, notes):
        rates = in_turns({"ours": ours, **{name: peer.ask for name, peer in peers.items()}}, min(size.rounds, 9))
    yield Row(
        "points until they are on disk and others can read them",
        rates["ours"],
        goal=Goal(500_000, at_least=True),
        unit="/s",
        peers={name: rates[name] for name in peers},
        notes=tuple(notes),
    )


def by_mlflow(place: Place, size: Size) -> Iterator[Row]:
    """The same client, the same calls; each server with a SQLite database on the same disk."""
    calls = "`mlflow.log_metric` over HTTP into the yard, a call"
    points = "the same by `log_batch`, 1,000 points at once"
    if not size.peers:
        yield not_measured(calls, "it needs MLflow")
        return
    beside = "into MLflow's own server"
    yield _side_by_side(place, size, "calls", calls, beside, Goal(1.0, times=True), "s")
    yield _side_by_side(place, size, "points", points, beside, Goal(1.0, times=True, at_least=True), "/s")


def _side_by_side(place: Place, size: Size, kind: str, what: str, beside: str, goal: Goal, unit: str) -> Row:
    try:
        with ExitStack() as stack:
            peers = []
            for name in ("ours", "theirs"):
                folder = place.folder(f"{kind}-{name}")
                (folder / "kind").write_text(kind)
                if name == "ours":
                    _say_where(place, folder)
                peers.append(Peer("mlflow", "http_mlflow.py", folder))
                stack.callback(peers[-1].close)
            times = in_turns({"ours": peers[0].ask, "theirs": peers[1].ask}, size.rounds)
    except NotMeasured as why:
        return not_measured(what, str(why))
    return Row(what, times["ours"], (beside, times["theirs"]), goal, unit=unit)


def _say_where(place: Place, folder: Path) -> None:
    address = place.experiment("mlflow").workspace.connection.post("/api/studio", {})
    told = {"url": address["url"].rstrip("/"), "token": address["token"]}
    (folder / "where.json").write_text(json.dumps(told))
