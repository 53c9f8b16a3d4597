"""The OpenAPI document, and system metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Workspace
from runyard.wire.points import decode_points
from support import eventually, with_this_python

WAIT = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"


def test_endpoints_are_documented_with_their_responses(workspace: Workspace) -> None:
    document = workspace.connection.get("/api/openapi.json")
    paths = document["paths"]
    for path in ("/api/runs/table", "/api/live", "/api/charts", "/api/runs/{run_id}/logs", "/api/diff/code"):
        assert path in paths
    row = document["components"]["schemas"]["TableRow"]["properties"]
    assert {"run_id", "params", "metrics", "tags", "reason"} <= set(row)
    query = {parameter["name"] for parameter in paths["/api/runs/table"]["get"]["parameters"]}
    assert query == {"query", "sort", "offset", "limit", "experiment"}
    window = document["components"]["schemas"]["ChartQuery"]["properties"]
    assert {"series", "most", "axis", "from", "to", "after"} == set(window)
    assert not [path for path in paths if not path.startswith("/api/")]


@pytest.mark.real
def test_system_metrics_are_series_but_not_metrics_of_the_run(
    workspace: Workspace, experiment: Experiment, project: Any, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    run = experiment.submit(with_this_python(project(train=WAIT), arguments=[str(stop)]))
    connection = workspace.connection
    eventually(lambda: connection.get(f"/api/runs/{run.id}/system"), "the agent has measured something", 30)
    stop.touch()
    run.wait_for_completion()
    names = [series["name"] for series in connection.get(f"/api/runs/{run.id}/system")]
    assert {"system/local/cpu", "system/local/memory", "system/local/network_in"} <= set(names)
    assert len(decode_points(connection.read(f"/api/runs/{run.id}/metrics/system/local/cpu")).values) >= 1
    assert run.get_metrics() == {}
    assert connection.get(f"/api/runs/{run.id}/series") == []
