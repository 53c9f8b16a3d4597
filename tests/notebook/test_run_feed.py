"""Updates of the run widget: everything once, then only changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runyard import Experiment, Run
from runyard.sdk.notebook.widget.feed import MAX_SERIES, RunFeed
from support import with_this_python


@pytest.fixture
def run(experiment: Experiment, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    with experiment.start_logging(snapshot_directory=None) as run:
        yield run


def feed_of(run: Run) -> RunFeed:
    return RunFeed(run.experiment.workspace.connection, run.id)


def test_only_new_points_are_sent(run: Run) -> None:
    for step in range(10):
        run.log("loss", step / 2, step=10 * step)
    feed = feed_of(run)
    full = feed.full_update()
    assert full["points"]["loss"] == {
        "full": True,
        "x": [10 * step for step in range(10)],
        "y": [step / 2 for step in range(10)],
    }
    assert full["view"]["status"] == "Running"
    assert feed.update() == {}
    run.log("loss", 7.5, step=200)
    run.log("acc", float("nan"))
    assert feed.update() == {
        "points": {
            "loss": {"full": False, "x": [200], "y": [7.5]},
            "acc": {"full": True, "x": [0], "y": [None]},
        }
    }
    assert feed.update() == {}


def test_points_without_steps_are_numbered(run: Run) -> None:
    run.log_list("loss", [1.0, 2.0, 3.0])
    feed = feed_of(run)
    assert feed.full_update()["points"]["loss"]["x"] == [0, 1, 2]
    run.log_list("loss", [4.0, 5.0])
    assert feed.update()["points"]["loss"] == {"full": False, "x": [3, 4], "y": [4.0, 5.0]}


def test_a_long_series_is_downsampled_with_its_peak(run: Run) -> None:
    for index in range(20_000):
        run.log("loss", 100.0 if index == 12_345 else 0.0)
    points = feed_of(run).full_update()["points"]["loss"]
    assert len(points["y"]) <= 600
    assert max(points["y"]) == 100.0
    assert points["x"] == sorted(points["x"])
    assert points["x"][-1] > 19_000


def test_many_new_points_are_sent_as_a_full_series(run: Run) -> None:
    run.log("loss", 1.0)
    feed = feed_of(run)
    feed.full_update()
    run.log_list("loss", [2.0] * 10_000)
    points = feed.update()["points"]["loss"]
    assert points["full"]
    assert len(points["y"]) <= 600


def test_only_numeric_series_become_charts_and_extra_ones_are_counted(run: Run) -> None:
    run.log_text("sample", "a")
    for number in range(MAX_SERIES + 3):
        run.log(f"metric {number}", number)
    full = feed_of(run).full_update()
    assert len(full["points"]) == MAX_SERIES
    assert full["more"] == 3


def test_the_log_continues_at_its_offset(experiment: Experiment, project: Any) -> None:
    script = "print('\\033[31mred\\033[0m')\nfor step in range(3): print(f'\\r{step}', end='')\nprint('\\n<b>end</b>')"
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    feed = feed_of(run)
    assert feed.full_update()["log"] == "red\n\r0\r1\r2\n<b>end</b>\n"  # the page lets the bar write over itself
    assert feed.ended
    assert feed.update() == {}


def test_the_first_update_contains_the_error(experiment: Experiment, project: Any) -> None:
    run = experiment.submit(with_this_python(project(train="raise ValueError('no <data>')")))
    run.wait_for_completion(raise_on_error=False)
    view = feed_of(run).full_update()["view"]
    assert view["error"] == "ValueError: no <data>"
    assert "Traceback" in view["details"]


def test_wait_returns_when_there_is_an_update(run: Run) -> None:
    feed = feed_of(run)
    feed.full_update()
    run.log("loss", 1.0)
    update: dict[str, Any] = {}
    while "points" not in update:
        feed.wait()
        update = feed.update()
    assert update["points"]["loss"]["y"] == [1.0]
