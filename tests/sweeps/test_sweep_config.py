"""What cannot be a sweep is refused when it is described; what is doubtful is said then."""

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
    loguniform,
    normal,
    qnormal,
    quniform,
    randint,
    uniform,
)

SAMPLING = RandomParameterSampling({"lr": uniform(0, 1)})


def config(**given: Any) -> HyperDriveConfig:
    settings: dict[str, Any] = {
        "hyperparameter_sampling": SAMPLING,
        "primary_metric_name": "acc",
        "primary_metric_goal": PrimaryMetricGoal.MAXIMIZE,
        "max_total_runs": 4,
        "estimator": Estimator(".", entry_script="train.py", compute_target="local"),
    }
    return HyperDriveConfig(**{**settings, **given})


def test_expressions_are_plain_lists() -> None:
    assert choice(1, 2) == choice([1, 2]) == choice(range(1, 3)) == ["choice", [[1, 2]]]
    assert uniform(0, 1) == ["uniform", [0, 1]]
    assert randint(5) == ["randint", [5]]


def test_numbers_of_numpy_become_pythons_own() -> None:
    made = [
        choice(np.int64(1), np.float32(0.5), np.bool_(True)),
        choice(np.arange(3)),
        choice({"--depth": np.int64(2), "--units": choice(list(np.arange(2)))}),
        uniform(np.float32(0), np.float64(1)),
        randint(np.int64(5)),
    ]
    assert json.loads(json.dumps(made)) == [
        ["choice", [[1, 0.5, True]]],
        ["choice", [[0, 1, 2]]],
        ["choice", [[{"--depth": 2, "--units": ["choice", [[0, 1]]]}]]],
        ["uniform", [0.0, 1.0]],
        ["randint", [5]],
    ]


@pytest.mark.parametrize(
    "made",
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
        lambda: BayesianParameterSampling({"lr": loguniform(-6, -1)}),
        lambda: BayesianParameterSampling({"lr": quniform(0.5, 3, 1)}),
        lambda: GridParameterSampling({"--m": choice({"--x": uniform(0, 1)})}),
        lambda: BayesianParameterSampling({"--m": choice({"--x": loguniform(-6, -1)})}),
        lambda: BayesianParameterSampling({"--m": choice({"--x": quniform(0.5, 3, 1)})}),
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
def test_what_makes_no_sense_is_refused(made: Any) -> None:
    """B13.83, B13.87, B13.88, B13.89, B13.92."""
    with pytest.raises(HyperDriveConfigException):
        made()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"estimator": "abc"}, r"estimator must be an estimator such as Estimator\(…\), got 'abc' \(str\)"),
        ({"estimator": None, "run_config": 5}, r"run_config must be a ScriptRunConfig, got 5 \(int\)"),
    ],
)
def test_what_is_neither_an_estimator_nor_a_script_says_what_is_taken(given: Any, said: str) -> None:
    with pytest.raises(HyperDriveConfigException, match=said):
        config(**given)


def test_the_largest_seed_is_taken() -> None:
    assert RandomParameterSampling({"lr": uniform(0, 1)}, seed=2**32 - 1)._spec(0).seed == 2**32 - 1


@pytest.mark.parametrize("goal", ["MAXIMIZE", "maximize", None])
def test_a_goal_that_is_no_goal_names_the_two_that_there_are_and_is_an_attribute_error_too(goal: Any) -> None:
    """B13.83."""
    with pytest.raises(HyperDriveConfigException, match=r"PrimaryMetricGoal\.MAXIMIZE or .*\.MINIMIZE, got") as caught:
        config(primary_metric_goal=goal)
    assert isinstance(caught.value, AttributeError)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({}, "script_params"),
        ({"estimator": None, "run_config": ScriptRunConfig(".", "train.py", ["--lr", 1])}, "arguments"),
    ],
)
def test_a_value_that_the_sweep_varies_is_said_to_be_unused_where_it_was_given(
    given: Any, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    config(**given)._warn_overridden(("--lr", "1"))
    assert caplog.messages == [f"the sweep varies --lr: the value in {where} is not used"]


@pytest.mark.parametrize("top", ["a", None, 1.5, True])
def test_how_many_children_are_wanted_is_a_number(experiment: Experiment, tmp_path: Path, top: Any) -> None:
    sweep = HyperDriveRun(experiment, "HD_1", _view={"type": "hyperdrive", "folder": str(tmp_path), "run_id": "HD_1"})
    with pytest.raises(HyperDriveException, match="top must be a whole number, 0 for all children, got"):
        sweep.get_children_sorted_by_primary_metric(top=top)


def test_what_a_sweep_cannot_go_on_from_is_named(sweep_of: Callable[..., HyperDriveRun]) -> None:
    failed = sweep_of("raise SystemExit(1)", max_total_runs=1)
    failed.wait_for_completion(raise_on_error=False)
    with pytest.raises(HyperDriveConfigException, match="is Failed: only a Completed or Canceled sweep can be"):
        config(resume_from=[failed])
    opened = failed.child_run("of a person")
    opened.complete()
    with pytest.raises(HyperDriveConfigException, match=f"run {opened.id} has no hyperparameters"):
        config(resume_child_runs=[opened])


def test_the_old_name_gives_the_same_thing() -> None:
    """B13.83."""
    made = HyperDriveRunConfig(
        estimator=Estimator(".", entry_script="train.py", compute_target="local"),
        hyperparameter_sampling=SAMPLING,
        primary_metric_name="acc",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=3,
    )
    assert isinstance(made, HyperDriveConfig)
    assert made._concurrent == 3


def test_a_grid_larger_than_the_budget_is_said_before() -> None:
    with pytest.warns(UserWarning, match="6 points and max_total_runs is 4"):
        config(hyperparameter_sampling=GridParameterSampling({"a": choice(1, 2, 3), "b": choice(1, 2)}))


def test_bayesian_sampling_with_few_runs_is_said_before() -> None:
    """B13.88."""
    with pytest.warns(UserWarning, match="20 runs for each parameter"):
        config(hyperparameter_sampling=BayesianParameterSampling({"lr": uniform(0, 1)}))


def test_policies_and_samplings_tell_what_they_are_as_json() -> None:
    policy = BanditPolicy(evaluation_interval=2, slack_factor=0.1).to_json()
    assert policy["properties"] == {"evaluation_interval": 2, "delay_evaluation": 0, "slack_factor": 0.1}
    assert SAMPLING.to_json()["parameter_space"] == {"lr": ["uniform", [0, 1]]}
