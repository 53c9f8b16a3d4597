"""The order of search results where values are equal, not numbers or missing; MLflow's server defines it."""

from __future__ import annotations

import math

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException


@pytest.fixture
def names_by_loss(client: MlflowClient, experiment_id: str) -> str:
    """Runs with equal, extreme and missing values; the time of their start is in the name."""
    values = {"a3": 1.0, "b1": math.nan, "c2": None, "d4": -math.inf, "e5": 1.0, "f6": math.inf, "g7": None, "h8": 0.0}
    for name, value in values.items():
        run_id = client.create_run(experiment_id, start_time=int(name[1]), run_name=name).info.run_id
        if value is not None:
            client.log_metric(run_id, "loss", value, timestamp=1)
        client.set_terminated(run_id)
    return experiment_id


def test_nan_comes_after_numbers_and_missing_values_come_last(client: MlflowClient, names_by_loss: str) -> None:
    ascending = [run.info.run_name for run in client.search_runs([names_by_loss], order_by=["metrics.loss"])]
    descending = [run.info.run_name for run in client.search_runs([names_by_loss], order_by=["metrics.loss DESC"])]
    assert ascending == ["d4", "h8", "e5", "a3", "f6", "b1", "g7", "c2"]
    assert descending == ["f6", "e5", "a3", "h8", "d4", "b1", "g7", "c2"]


def test_runs_that_started_at_the_same_time_are_sorted_by_id(client: MlflowClient, experiment_id: str) -> None:
    run_ids = [client.create_run(experiment_id, start_time=1000).info.run_id for _ in range(4)]
    for run_id in run_ids:
        client.set_terminated(run_id)
    for order in ([], ["metrics.loss"], ["attributes.start_time DESC"]):
        assert [run.info.run_id for run in client.search_runs([experiment_id], order_by=order)] == sorted(run_ids)


def test_an_order_with_the_same_key_twice_is_an_error(client: MlflowClient, experiment_id: str) -> None:
    with pytest.raises(MlflowException, match="duplicate") as caught:
        client.search_runs([experiment_id], order_by=["metrics.loss", "metrics.loss DESC"])
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
