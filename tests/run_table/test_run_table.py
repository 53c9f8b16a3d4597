"""The run table: encoded rows, sorting, and updates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_table_support import Runs
from runyard.errors import UserErrorException
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.run_table.table import MAX_CHANGES, RunTable
from runyard.store.open_store import open_database
from runyard.wire.run_table import TableRow
from studio_support import fill_home


def test_a_row_has_every_field_of_the_response_type(runs: Runs) -> None:
    runs.add("r-1", "--lr", "0.1", tags={"team": None}, loss=0.5)
    (row,) = runs.rows()
    assert TableRow(**row) == TableRow(
        run_id="r-1",
        number=1,
        experiment="digits",
        name=None,
        display_name="r-1",
        status="Completed",
        target="local",
        type=None,
        parent_id=None,
        submitted_by="ada",
        created_at=1000.0,
        started_at=1000.0,
        ended_at=1060.0,
        duration_s=60.0,
        nodes=1,
        ranks=1,
        reason="",
        tags={"team": None},
        params={"lr": 0.1},
        metrics={"loss": 0.5},
    )


@pytest.mark.parametrize(
    ("spec", "nodes", "ranks"),
    [
        ({}, 1, 1),
        ({"resources": {"nodes": 2, "processes_per_node": 4}, "launch": {"kind": "mpi"}}, 2, 8),
        ({"launch": {"kind": "parameter-server", "workers": 2, "servers": 1, "evaluator": True}}, 1, 4),
        ({"resources": {"nodes": 3, "processes_per_node": 2}, "launch": {"kind": "torch"}}, 3, 6),
    ],
)
def test_a_row_has_the_number_of_nodes_and_ranks(runs: Runs, spec: dict[str, Any], nodes: int, ranks: int) -> None:
    runs.add("r-1", spec=spec)
    (row,) = runs.rows()
    assert (row["nodes"], row["ranks"]) == (nodes, ranks)


def test_a_row_has_the_reason_for_failing_or_waiting_in_one_line(runs: Runs) -> None:
    runs.add("r-1", state=RunState.FAILED, message="ValueError: no\nsecond line")
    runs.add("r-queued", state=RunState.QUEUED, created_at=2000.0)
    first, second = runs.rows()
    assert first["reason"] == "script failed: ValueError: no"
    assert second["reason"] == "waiting for 2 GPUs"
    runs.activities["r-queued"] = "waiting for 1 GPU"
    assert runs.rows()[1]["reason"] == "waiting for 1 GPU"


def test_numbers_that_json_lacks_are_strings(runs: Runs) -> None:
    runs.add("r-1", a=float("nan"), b=float("inf"), c=float("-inf"), d=1.5)
    assert runs.rows()[0]["metrics"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1.5}
    assert runs.find("d>1", sort="-metrics.a") == ["r-1"]


def test_invalid_unicode_in_labels_does_not_break_the_table(runs: Runs) -> None:
    runs.add("r-1", "--name", "\udcff", tags={"t": "plain"})
    runs.add("r-2", tags={"t": "\u202eodd\n\"'</script>"}, created_at=2000.0)
    assert runs.rows()[1]["tags"]["t"] == "\u202eodd\n\"'</script>"
    assert runs.find("tags.t:plain") == ["r-1"]


def test_invalid_unicode_in_a_reason_does_not_break_the_table(runs: Runs) -> None:
    runs.add("r-1", state=RunState.FAILED, message="ValueError: bad \udcff.csv")
    (row,) = runs.rows()
    assert row["reason"].startswith("script failed: ValueError: bad ")


def test_sorting_puts_runs_without_the_field_last(runs: Runs) -> None:
    runs.add("r-1", "--lr", "0.1", loss=3, name="b")
    runs.add("r-2", "--lr", "0.02", loss=1, name="a", created_at=2000.0)
    runs.add("r-3", "--lr", "high", loss=2, created_at=3000.0)
    runs.add("r-4", created_at=4000.0)
    assert runs.find(sort="metrics.loss") == ["r-2", "r-3", "r-1", "r-4"]
    assert runs.find(sort="-metrics.loss") == ["r-1", "r-3", "r-2", "r-4"]
    assert runs.find(sort="params.lr") == ["r-2", "r-1", "r-3", "r-4"]
    assert runs.find(sort="-params.lr") == ["r-1", "r-2", "r-3", "r-4"]
    assert runs.find(sort="name") == ["r-2", "r-1", "r-4", "r-3"]
    assert runs.find(sort="experiment,-created") == ["r-4", "r-3", "r-2", "r-1"]
    with pytest.raises(UserErrorException, match="unknown sort field 'colour'"):
        runs.find(sort="colour")


def test_pages_do_not_overlap_and_have_the_total(runs: Runs) -> None:
    for number in range(7):
        runs.add(f"r-{number}", created_at=float(number), experiment="a" if number % 2 else "b")
    first, second = (runs.table.page(sort="created_at", offset=offset, limit=4) for offset in (0, 4))
    assert (first.total, len(first.rows), len(second.rows)) == (7, 4, 3)
    assert not set(first.rows) & set(second.rows)
    assert runs.table.page(experiment="a").total == 3
    assert runs.table.page(offset=100).rows == []


def test_changes_are_in_the_next_result(runs: Runs) -> None:
    runs.add("r-1", state=RunState.RUNNING, loss=0.5)
    assert runs.find("loss<0.3 or team:vision or status:completed") == []
    runs.log("r-1", "loss", 0.1)
    assert runs.find("loss<0.3") == ["r-1"]
    runs.store.set_tags("r-1", {"team": "vision"})
    assert runs.find("team:vision") == ["r-1"]
    runs.store.set_params("r-1", {"depth": "7"})
    assert runs.find("depth=7", sort="-params.depth") == ["r-1"]
    life = Life(RunState.COMPLETED, End(EndReason.SUCCEEDED))
    runs.store.save(replace(runs.store.load("r-1"), life=life, ended_at=1001.0))
    assert runs.find("status:completed") == ["r-1"]
    runs.add("r-2", "--depth", "8", loss=0.2, created_at=2000.0)
    assert runs.find("depth>1", sort="-params.depth") == ["r-2", "r-1"]


def test_changed_runs_are_listed_in_order(runs: Runs) -> None:
    runs.add("r-1")
    runs.add("r-2")
    before = runs.table.version
    assert runs.table.changed(before) == (before, [])
    runs.store.set_tags("r-1", {"a": "b"})
    runs.log("r-2", "loss", 1.0)
    runs.store.set_tags("r-1", {"a": "c"})
    version, changed = runs.table.changed(before)
    assert version > before
    assert changed == ["r-2", "r-1"]
    assert runs.table.changed(version) == (version, [])


def test_a_very_old_or_unknown_version_requires_a_reload(tmp_path: Path) -> None:
    fill_home(tmp_path, MAX_CHANGES + 1)
    database = open_database(tmp_path / "yard.db")
    table = RunTable(database, lambda *_: "")
    assert table.changed(0)[1] is None
    assert table.changed(10**9)[1] is None
    assert table.changed(1)[1] is not None
    database.close()


def test_label_names_are_counted_as_runs_change(runs: Runs) -> None:
    runs.add("r-1", "--lr", "0.1", "--optimizer", "adam", loss=1.0)
    runs.add("r-2", "--lr", "0.2", state=RunState.RUNNING)
    names = {name: (is_number, count) for name, is_number, count in runs.table.names()}
    assert names["params.lr"] == (True, 2)
    assert names["params.optimizer"] == (False, 1)
    assert names["metrics.loss"] == (True, 1)
    runs.log("r-2", "loss", 2.0)
    runs.log("r-2", "loss", 3.0)
    assert ("metrics.loss", True, 2) in runs.table.names()


def test_system_metrics_are_not_metrics_of_the_run(runs: Runs) -> None:
    runs.add("r-1", loss=1.0)
    version = runs.table.version
    runs.log("r-1/system", "local/cpu", 50.0)
    assert runs.table.version == version
    assert runs.rows()[0]["metrics"] == {"loss": 1.0}


def test_a_run_deleted_by_an_mlflow_client_is_hidden_unless_queried(runs: Runs) -> None:
    runs.add("r-1")
    runs.add("r-2", created_at=2000.0)
    runs.store.set_tags("r-1", {"mlflow.lifecycleStage": "deleted"})
    assert runs.find() == ["r-2"]
    assert runs.find("tags.mlflow.lifecycleStage:deleted") == ["r-1"]
    (first, second) = runs.table.rows(["r-1", "r-2", "nobody"])
    assert first == ("r-1", None)
    assert second[1] is not None
    runs.store.set_tags("r-1", {"mlflow.lifecycleStage": "active"})
    assert runs.find() == ["r-1", "r-2"]


def test_long_texts_are_truncated(runs: Runs) -> None:
    runs.add("r-1", "--prompt", "p" * 100_000, tags={"note": "n" * 100_000})
    (row,) = runs.rows()
    assert len(row["params"]["prompt"]) == len(row["tags"]["note"]) == 500
    assert row["params"]["prompt"].endswith("p…")
