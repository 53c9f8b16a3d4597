"""Metrics of all types and in large numbers, through the SDK."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from runyard import Experiment
from runyard.errors import RunyardException, UserErrorException
from runyard.wire.points import decode_points
from support import with_this_python

NAN = float("nan")


def same(left: object, right: object) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return left == right and type(left) is type(right)


@pytest.mark.parametrize(
    "value",
    [
        NAN, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1,
        0, -1, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70), 10**300,
        True, False, None, "", "text", "ünï 日本 🎈", "a\nb\0c", "x" * 100_000, "\udce9 no unicode",
        [NAN, 1.0], [math.inf, None, "x", True], [2**80, 1], ["\ud800", "x"],
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_a_value_is_read_as_it_was_logged(experiment: Experiment, value: object) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        log = run.log_list if isinstance(value, list) else run.log
        log("x", value)
        log("other", 1 if not isinstance(value, list) else [1, 2])
        assert same(run.get_metrics()["x"], value)
        assert same(run.get_metrics(name="x")["x"], value)
        run.log_row("row", x=value[0] if isinstance(value, list) else value)
        assert same(run.get_metrics()["row"]["x"], value[0] if isinstance(value, list) else value)
    assert same(run.get_metrics()["x"], value)
    assert run.wait_for_completion()["status"] == "Completed"
    run._connection.get(f"/api/runs/{run.id}/summary")


@pytest.mark.parametrize(
    "name", ["a/b", "..", "a\nb", "ünï 日本", "%2f", "?x=1#y", " ", "'; DROP TABLE", "n" * 255, "a (row)"]
)
def test_a_metric_may_have_any_name(experiment: Experiment, name: str) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log_list(name, [1.0, 2.0])
        assert run.get_metrics() == {name: [1.0, 2.0]}
        assert run.get_metrics(name=name) == {name: [1.0, 2.0]}
        points = decode_points(run._connection.read(f"/api/runs/{run.id}/metrics/{name}"))
        assert list(points.values) == [1.0, 2.0]


@pytest.mark.parametrize("name", ["", "n" * 256, None, 7, b"x", "\udce9"])
def test_an_invalid_name_is_refused(experiment: Experiment, name: object) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        for log in (lambda: run.log(name, 1), lambda: run.log_list(name, [1]), lambda: run.log_table(name, {"a": [1]})):
            with pytest.raises(UserErrorException, match="name"):
                log()
        assert run.get_metrics() == {}


class Plot:
    """The part of matplotlib.pyplot that log_image uses."""

    def savefig(self, target: object, **options: object) -> None:
        assert options["format"] == "png"
        target.write(b"\x89PNG of a plot")  # type: ignore[attr-defined]


def test_images_by_plot_and_by_path_also_on_an_ended_run(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plots").mkdir()
    Path("plots/a b.png").write_bytes(b"\x89PNG of a file")
    with experiment.start_logging(snapshot_directory=None) as run:
        run.log_image("acc over epochs.png", plot=Plot())
        run.log_image("by path", path="./plots/a b.png")
    run.wait_for_completion()
    run.log_image("later", plot=Plot())
    metrics = run.get_metrics()
    assert metrics["by path"] == f"aml://artifactId/ExperimentRun/dcid.{run.id}/plots/a b.png"
    for name in ("acc over epochs.png", "later"):
        uri = metrics[name]
        assert uri.startswith(f"aml://artifactId/ExperimentRun/dcid.{run.id}/{name}_")
        run.download_file(uri.rpartition("/")[2], "got.png")
        assert Path("got.png").read_bytes() == b"\x89PNG of a plot"
    for wrong in ({}, {"path": "plots/a b.png", "plot": Plot()}):
        with pytest.raises(RunyardException):
            run.log_image("wrong", **wrong)
    with pytest.raises(RunyardException):
        run.log_image("wrong", path="nowhere.png")
    assert "wrong" not in run.get_metrics()


MANY_PROCESSES = """
import os, sys
from runyard import Run
run = Run.get_context()
children = []
for worker in range(12):
    pid = os.fork()
    if pid == 0:
        for n in range(2000):
            run.log('shared', worker * 10_000 + n)
            run.log(f'own {worker}', float(n))
            if n == 1000:
                run.log_row('rows', worker=worker)
        os._exit(0) if worker % 2 else os.kill(os.getpid(), 9)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""


@pytest.mark.real
def test_many_processes_of_one_run_lose_and_duplicate_nothing(experiment: Experiment, project) -> None:
    run = experiment.submit(with_this_python(project(train=MANY_PROCESSES)))
    while run.get_status() not in ("Completed", "Failed"):
        run.get_metrics(name="shared")  # read while they write
    assert run.get_status() == "Completed"
    metrics = run.get_metrics()
    assert sorted(metrics["shared"]) == [worker * 10_000 + n for worker in range(12) for n in range(2000)]
    for worker in range(12):
        assert metrics[f"own {worker}"] == [float(n) for n in range(2000)]
    assert sorted(metrics["rows"]["worker"]) == list(range(12))


@pytest.mark.real
def test_a_million_points_are_read_and_charted(experiment: Experiment, project) -> None:
    script = """
from runyard import Run
log = Run.get_context().log
for n in range(1_000_000):
    log('n', float(n))
    if n == 777_777:
        log('n', -5.0)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    values = run.get_metrics()["n"]
    assert len(values) == 1_000_001
    assert sum(values) == sum(range(1_000_000)) - 5
    chart = decode_points(run._connection.read(f"/api/runs/{run.id}/metrics/n", most=1000))
    assert 500 <= len(chart.values) <= 1000
    assert min(chart.values) == -5.0
    assert max(chart.values) == 999_999.0
    part = decode_points(run._connection.read(f"/api/runs/{run.id}/metrics/n", after=999_999, limit=10))
    assert list(part.values) == [999_998.0, 999_999.0]
