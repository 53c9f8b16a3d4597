"""The API describes itself, and what an agent measures is among what it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Workspace
from runyard.wire.points import decode_points
from support import eventually, with_this_python

WAIT = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"


def test_every_address_is_described_with_what_it_answers(workspace: Workspace) -> None:
    described = workspace.connection.get("/api/openapi.json")
    paths = described["paths"]
    for path in ("/api/runs/table", "/api/live", "/api/charts", "/api/runs/{run_id}/logs", "/api/diff/code"):
        assert path in paths
    row = described["components"]["schemas"]["TableRow"]["properties"]
    assert {"run_id", "params", "metrics", "tags", "reason"} <= set(row)
    query = {parameter["name"] for parameter in paths["/api/runs/table"]["get"]["parameters"]}
    assert query == {"query", "sort", "offset", "limit", "experiment"}
    window = described["components"]["schemas"]["ChartQuery"]["properties"]
    assert {"series", "most", "axis", "from", "to", "after"} == set(window)
    assert not [path for path in paths if not path.startswith("/api/")]


@pytest.mark.real
def test_what_agents_measure_is_read_as_other_series_are_and_is_no_metric(
    workspace: Workspace, experiment: Experiment, project: Any, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    run = experiment.submit(with_this_python(project(train=WAIT), arguments=[str(stop)]))
    ask = workspace.connection
    eventually(lambda: ask.get(f"/api/runs/{run.id}/system"), "the agent has measured something", 30)
    stop.touch()
    run.wait_for_completion()
    names = [series["name"] for series in ask.get(f"/api/runs/{run.id}/system")]
    assert {"system/local/cpu", "system/local/memory", "system/local/network_in"} <= set(names)
    assert len(decode_points(ask.read(f"/api/runs/{run.id}/metrics/system/local/cpu")).values) >= 1
    assert run.get_metrics() == {}
    assert ask.get(f"/api/runs/{run.id}/series") == []
