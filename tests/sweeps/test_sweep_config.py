"""HyperDriveConfig rejects invalid settings and warns about doubtful ones when it is created."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runyard import Estimator, Experiment, ScriptRunConfig
from runyard.errors import HyperDriveException
from runyard.hyperdrive import (
    BanditPolicy,
    BayesianParameterSampling,
    GridParameterSampling,
    HyperbandPolicy,
    HyperDriveConfig,
    HyperDriveConfigException,
    HyperDriveRun,
    HyperDriveRunConfig,
    MedianStoppingPolicy,
    PrimaryMetricGoal,
    RandomParameterSampling,
    SobolParameterSampling,
    TruncationSelectionPolicy,
    choice,
    normal,
    qnormal,
    quniform,
    randint,
    uniform,
)

SAMPLING = RandomParameterSampling({"lr": uniform(0, 1)})


def config(**overrides: Any) -> HyperDriveConfig:
    settings: dict[str, Any] = {
        "hyperparameter_sampling": SAMPLING,
        "primary_metric_name": "acc",
        "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
        "max_total_runs": 4,
        "estimator": Estimator(".", entry_script="train.py", compute_target="local"),
    }
    return HyperDriveConfig(**{**settings, **overrides})


def test_expressions_are_plain_lists() -> None:
    assert choice(1, 2) == choice([1, 2]) == choice(range(1, 3)) == ["choice", [[1, 2]]]
    assert uniform(0, 1) == ["uniform", [0, 1]]
    assert randint(5) == ["randint", [5]]


def test_numpy_numbers_become_python_numbers() -> None:
    expressions = [
        choice(np.int64(1), np.float32(0.5), np.bool_(True)),
        choice(np.arange(3)),
        choice({"--depth": np.int64(2), "--units": choice(list(np.arange(2)))}),
        uniform(np.float32(0), np.float64(1)),
        randint(np.int64(5)),
    ]
    assert json.loads(json.dumps(expressions)) == [
        ["choice", [[1, 0.5, True]]],
        ["choice", [[0, 1, 2]]],
        ["choice", [[{"--depth": 2, "--units": ["choice", [[0, 1]]]}]]],
        ["uniform", [0.0, 1.0]],
        ["randint", [5]],
    ]


@pytest.mark.parametrize(
    "create",
    [
        lambda: choice(),
        lambda: choice(1, "a"),
        lambda: choice(date(2026, 1, 1)),
        lambda: choice(np.arange(3), np.arange(2)),
        lambda: choice(np.datetime64("2026-01-01")),
        lambda: choice({}),
        lambda: uniform(1, 0),
        lambda: uniform(0, 10**400),
        lambda: randint(10**400),
        lambda: quniform(1, 4, 10),
        lambda: quniform(0, 1, 0.5),
        lambda: randint(0),
        lambda: normal(0, -1),
        lambda: qnormal(0, 1, 1.5),
        lambda: GridParameterSampling({"lr": uniform(0, 1)}),
        lambda: GridParameterSampling({"--m": choice({"--x": uniform(0, 1)})}),
        lambda: RandomParameterSampling({"lr": uniform(0, 1), "--lr": uniform(0, 1)}),
        lambda: RandomParameterSampling({}),
        lambda: RandomParameterSampling({"lr": 0.1}),
        lambda: RandomParameterSampling({"lr": uniform(0, 1)}, seed=-1),
        lambda: BayesianParameterSampling({"lr": uniform(0, 1)}, seed=2**32),
        lambda: BanditPolicy(),
        lambda: BanditPolicy(slack_factor=0.1, slack_amount=0.1),
        lambda: BanditPolicy(slack_factor=-0.1),
        lambda: BanditPolicy(slack_factor=math.nan),
        lambda: BanditPolicy(slack_amount=math.inf),
        lambda: BanditPolicy(slack_amount=10**400),
        lambda: BanditPolicy(slack_factor=0.1, evaluation_interval=1.5),
        lambda: BanditPolicy(slack_factor=0.1, evaluation_interval=0),
        lambda: MedianStoppingPolicy(delay_evaluation="2"),
        lambda: TruncationSelectionPolicy(0),
        lambda: TruncationSelectionPolicy(100),
        lambda: TruncationSelectionPolicy(10.5),
        lambda: HyperbandPolicy(reduction_factor=1),
        lambda: config(estimator=None),
        lambda: config(run_config=object()),
        lambda: config(pipeline=object(), estimator=None),
        lambda: config(policy="bandit"),
        lambda: config(hyperparameter_sampling={"lr": [1]}),
        lambda: config(primary_metric_name=""),
        lambda: config(max_total_runs=0),
        lambda: config(max_concurrent_runs=-1),
        lambda: config(max_duration_minutes=0),
        lambda: config(max_total_runs=2**31),
        lambda: config(max_concurrent_runs=2**31),
        lambda: config(max_duration_minutes=2**31),
        lambda: config(max_failures_in_a_row=2**31),
        lambda: config(max_total_runs=2**30 + 1, hyperparameter_sampling=SobolParameterSampling({"a": choice(1)})),
        lambda: config(resume_from=["not a run"]),
        lambda: config(resume_child_runs=["a", "a"]),
    ],
)
def test_invalid_settings_are_rejected(create: Any) -> None:
    """B13.83, B13.87, B13.88, B13.89, B13.92."""
    with pytest.raises(HyperDriveConfigException):
        create()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"estimator": "abc"}, r"estimator must be an estimator such as Estimator\(…\), got 'abc' \(str\)"),
        ({"estimator": None, "run_config": 5}, r"run_config must be a ScriptRunConfig, got 5 \(int\)"),
    ],
)
def test_a_value_of_the_wrong_type_names_the_expected_type(overrides: Any, message: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=message):
        config(**overrides)


def test_the_largest_seed_is_accepted() -> None:
    assert RandomParameterSampling({"lr": uniform(0, 1)}, seed=2**32 - 1)._spec(0).seed == 2**32 - 1


@pytest.mark.parametrize("goal", ["MAXIMIZE", "maximize", None])
def test_an_invalid_goal_lists_both_goals_and_is_also_an_attribute_error(goal: Any) -> None:
    """B13.83."""
    with pytest.raises(HyperDriveConfigException, match=r"PrimaryMetricGoal\.MAXIMIZE or .*\.MINIMIZE, got") as caught:
        config(primary_metric_goal=goal)
    assert isinstance(caught.value, AttributeError)


@pytest.mark.parametrize(
    ("overrides", "source"),
    [
        ({}, "script_params"),
        ({"estimator": None, "run_config": ScriptRunConfig(".", "train.py", ["--lr", 1])}, "arguments"),
    ],
)
def test_a_value_overridden_by_the_sweep_is_logged(
    overrides: Any, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    config(**overrides)._warn_overridden(("--lr", "1"))
    assert caplog.messages == [f"the sweep varies --lr: the value in {source} is not used"]


@pytest.mark.parametrize("top", ["a", None, 1.5, True])
def test_top_must_be_a_number(experiment: Experiment, tmp_path: Path, top: Any) -> None:
    sweep = HyperDriveRun(experiment, "HD_1", _view={"type": "hyperdrive", "folder": str(tmp_path), "run_id": "HD_1"})
    with pytest.raises(HyperDriveException, match="top must be a whole number, 0 for all children, got"):
        sweep.get_children_sorted_by_primary_metric(top=top)


def test_runs_that_cannot_be_resumed_are_rejected(sweep_of: Callable[..., HyperDriveRun]) -> None:
    failed = sweep_of("raise SystemExit(1)", max_total_runs=1)
    failed.wait_for_completion(raise_on_error=False)
    with pytest.raises(HyperDriveConfigException, match="is Failed: only a Completed or Canceled sweep can be"):
        config(resume_from=[failed])
    interactive = failed.child_run("interactive")
    interactive.complete()
    with pytest.raises(HyperDriveConfigException, match=f"run {interactive.id} has no hyperparameters"):
        config(resume_child_runs=[interactive])


def test_the_old_class_name_is_an_alias() -> None:
    """B13.83."""
    created = HyperDriveRunConfig(
        estimator=Estimator(".", entry_script="train.py", compute_target="local"),
        hyperparameter_sampling=SAMPLING,
        primary_metric_name="acc",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=3,
    )
    assert isinstance(created, HyperDriveConfig)
    assert created._concurrent == 3


def test_a_grid_larger_than_the_budget_warns() -> None:
    with pytest.warns(UserWarning, match="6 points and max_total_runs is 4"):
        config(hyperparameter_sampling=GridParameterSampling({"a": choice(1, 2, 3), "b": choice(1, 2)}))


def test_bayesian_sampling_with_few_runs_warns() -> None:
    """B13.88."""
    with pytest.warns(UserWarning, match="20 runs for each parameter"):
        config(hyperparameter_sampling=BayesianParameterSampling({"lr": uniform(0, 1)}))


def test_policies_and_samplings_convert_to_json() -> None:
    policy = BanditPolicy(evaluation_interval=2, slack_factor=0.1).to_json()
    assert policy["properties"] == {"evaluation_interval": 2, "delay_evaluation": 0, "slack_factor": 0.1}
    assert SAMPLING.to_json()["parameter_space"] == {"lr": ["uniform", [0, 1]]}
