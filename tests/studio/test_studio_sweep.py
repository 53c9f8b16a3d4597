"""The sweep tab in a real browser, live from the first child to the last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from playwright.sync_api import expect

from runyard import Experiment, Workspace
from runyard.hyperdrive import BanditPolicy, GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from runyard.integrations.optuna import RunyardStorage
from support import with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

SCRIPT = """\
import sys, time
from runyard import Run
run = Run.get_context()
x = float(sys.argv[2])
for report in range(30 if x > 1 else 2000):
    run.log("score", x)
    time.sleep(0.05)
"""


def test_a_sweep_is_followed_live(own_home: Path, project: Callable[..., Path], studio: Callable[..., object]) -> None:
    sweep = Experiment(Workspace(), "swept").submit(
        HyperDriveConfig(
            GridParameterSampling({"--x": choice(10, 1, 8)}),
            "score",
            PrimaryMetricGoal.MAXIMIZE,
            3,
            2,
            policy=BanditPolicy(slack_factor=0.5, evaluation_interval=3),
            run_config=with_this_python(project(train=SCRIPT), "train.py"),
        )
    )
    page = studio(own_home).open(f"/runs/{sweep.id}")  # type: ignore[attr-defined]
    board = page.get_by_role("table").filter(has=page.get_by_role("columnheader", name="Reason"))
    expect(board.get_by_role("row")).to_have_count(4, timeout=60_000)
    expect(board).to_contain_text("stopped early by Bandit")
    expect(page.get_by_role("progressbar", name="Finished children")).to_have_attribute(
        "aria-valuenow", "3", timeout=60_000
    )
    rows = board.get_by_role("row").all()[1:]
    assert [row.get_by_role("rowheader").inner_text() for row in rows] == ["0", "2", "1"]
    expect(page.get_by_role("img", name="score", exact=False).first).to_be_visible()

    # the other tabs show the children: a sweep runs no process itself
    tabs = page.get_by_role("navigation", name="Run")
    tabs.get_by_role("link", name="Charts").click()
    expect(page.get_by_role("slider", name="score: use the arrow keys")).to_be_visible()
    tabs.get_by_role("link", name="Environment").click()
    expect(page.get_by_label("Child")).to_have_value(f"{sweep.id}_0")
    expect(page.get_by_text("Lock file")).to_be_visible()
    tabs.get_by_role("link", name="System").click()
    page.get_by_label("Child").select_option(f"{sweep.id}_2")
    expect(page.get_by_role("link", name="Open child")).to_have_attribute("href", f"/runs/{sweep.id}_2")
    tabs.get_by_role("link", name="Children").click()
    board.get_by_role("link", name="0", exact=True).click()
    page.wait_for_url(f"**/runs/{sweep.id}_0*")


def test_a_study_of_optuna_is_followed_live(own_home: Path, studio: Callable[..., object]) -> None:
    storage = RunyardStorage()
    study = optuna.create_study(study_name="tune", storage=storage, direction="maximize")
    trials = [study.ask() for _ in range(2)]
    for trial in trials:
        trial.report(trial.suggest_float("depth", trial.number, trial.number) + 0.5, 0)
    storage.flush()
    assert storage.run is not None
    page = studio(own_home).open(f"/runs/{storage.run.id}")  # type: ignore[attr-defined]
    board = page.get_by_role("table").filter(has=page.get_by_role("columnheader", name="depth"))
    expect(board.get_by_role("row")).to_have_count(3)
    expect(board).to_contain_text("Running")
    expect(page.get_by_text("Optuna, study tune")).to_be_visible()
    study.tell(trials[0], 7.0)
    study.tell(trials[1], state=optuna.trial.TrialState.PRUNED)
    expect(board).to_contain_text("pruned at step 0", timeout=30_000)
    expect(page.get_by_text("7 (child 0)")).to_be_visible()
    storage.run.complete()
