"""Search for runs, compared with MLflow's own implementation, which is part of the client."""

from __future__ import annotations

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from mlflow.utils.search_utils import SearchUtils

FILTERS = [
    "",
    "metrics.loss < 0.3",
    "metrics.loss <= 0.25 and metrics.loss >= 0.25",
    "metrics.loss != 0.25",
    "metrics.`val/loss score` > 0.5",
    'metrics."val/loss score" > 0.5',
    "metric.loss > -1e3 AND metric.loss < 1e3",
    "metrics.odd > 100",
    "metrics.odd < 100",
    "metrics.nobody > 0",
    "params.model = 'cnn'",
    "params.model != 'cnn'",
    'parameters.model = "rnn" AND metrics.loss < 1',
    "params.model LIKE 'c%'",
    "params.model LIKE 'C%'",
    "params.model ILIKE 'C%'",
    "params.`batch size` = '32'",
    "params.model IS NULL",
    "params.model IS NOT NULL",
    "tags.team = 'vision'",
    "tag.`mlflow.user` = 'somebody'",
    "tags.mlflow.source.name = 'train.py'",
    "tags.note LIKE '%100\\%%'",
    "tags.note = 'it is [odd] * and ?'",
    "tags.note LIKE '%[odd] * and ?'",
    "attributes.status = 'FINISHED'",
    "status != 'FINISHED'",
    "attribute.status LIKE 'F%'",
    "attributes.run_name = 'run 1'",
    "run_name LIKE 'run _'",
    "attr.`Run name` ILIKE 'RUN 2'",
    "attributes.start_time > 1700000000000",
    "attributes.start_time > 1700000002500 and attributes.start_time <= 1700000004000",
    "attributes.Created >= 1700000003000",
    "attributes.end_time > 0",
    "attributes.user_id = 'somebody'",
    "attributes.artifact_uri LIKE 'mlflow-artifacts:/%'",
]
ORDERS = [
    ["metrics.loss"],
    ["metrics.loss DESC"],
    ["params.model ASC", "metrics.loss DESC"],
    ["tags.team DESC"],
    ["attributes.start_time ASC"],
    ["start_time DESC"],
    ["attributes.status", "attributes.run_name DESC"],
    ["metrics.`val/loss score` DESC"],
]


@pytest.fixture(scope="module")
def created() -> dict[str, str]:
    return {}


@pytest.fixture
def searched(client: MlflowClient, created: dict[str, str], shared_home: object) -> str:
    """An experiment with six different runs, shared by the tests of this file."""
    if created:
        return created["id"]
    experiment_id = client.create_experiment("searched")
    for number in range(6):
        tags = {"mlflow.user": "somebody", "mlflow.source.name": "train.py", "mlflow.runName": f"run {number}"}
        run_id = client.create_run(experiment_id, 1_700_000_000_000 + 1000 * number, tags).info.run_id
        metrics, params, labels = {}, {}, {}
        if number != 5:
            metrics["loss"] = (5 - number) * 0.25
            params["model"] = ("cnn", "rnn", "CNN")[number % 3]
        if number % 2:
            labels["team"] = ("vision", "text")[number // 3]
            metrics["val/loss score"] = number / 4
            params["batch size"] = "32"
        if number == 3:
            metrics["odd"] = float("inf")
            labels["note"] = "it is [odd] * and ?"
        if number == 4:
            labels["note"] = "from 0 to 100%"
        client.log_batch(
            run_id,
            [Metric(key, value, 1_700_000_000_000, 0) for key, value in metrics.items()],
            [Param(key, value) for key, value in params.items()],
            [RunTag(key, value) for key, value in labels.items()],
        )
        if number != 4:
            client.set_terminated(run_id, ("FINISHED", "FAILED")[number % 2])
    created["id"] = experiment_id
    return experiment_id


@pytest.mark.parametrize("text", FILTERS)
def test_a_filter_matches_the_same_runs_as_mlflow(client: MlflowClient, searched: str, text: str) -> None:
    everything = list(client.search_runs([searched]))
    assert len(everything) == 6
    assert names(client.search_runs([searched], text)) == names(SearchUtils.filter(everything, text))


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_an_order_equals_that_of_mlflow(client: MlflowClient, searched: str, order: list[str]) -> None:
    everything = list(client.search_runs([searched]))
    assert names(client.search_runs([searched], order_by=order)) == names(SearchUtils.sort(everything, order))


def test_lists_of_ids(client: MlflowClient, searched: str) -> None:
    runs = client.search_runs([searched], order_by=["attributes.run_name"])
    ids = ", ".join(f"'{run.info.run_id}'" for run in runs[:2])
    assert names(client.search_runs([searched], f"attributes.run_id IN ({ids})")) == ["run 1", "run 0"]
    assert len(client.search_runs([searched], f"attributes.run_id NOT IN ({ids})")) == 4


def test_pages_follow_each_other_without_gaps(client: MlflowClient, searched: str) -> None:
    results, token = [], None
    while True:
        page = client.search_runs([searched], max_results=2, page_token=token, order_by=["metrics.loss"])
        results += names(page)
        token = page.token
        if not token:
            break
    assert results == ["run 4", "run 3", "run 2", "run 1", "run 0", "run 5"]


def test_several_experiments_are_searched_together(client: MlflowClient, searched: str, experiment_id: str) -> None:
    with mlflow.start_run(run_name="elsewhere"):
        mlflow.log_metric("loss", 0.1)
    results = names(client.search_runs([searched, experiment_id, "of-another-yard"], "metrics.loss < 0.3"))
    assert sorted(results) == ["elsewhere", "run 4"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics.loss <", "at its end: expected a number to compare 'loss' with"),
        ("metrics.loss < 'a'", """at "'a'": expected a number"""),
        ("params.model = cnn", "at 'cnn': expected a quoted string"),
        ("metrics.loss < 1 OR params.model = 'cnn'", "expected AND"),
        ("loss < 1", "Invalid attribute key 'loss' specified in 'loss < 1': expected one of run_id"),
        ("model.x = 1", "expected metrics, params, tags, attributes or datasets"),
        ("metrics.loss LIKE 'a'", "metrics.loss does not support LIKE"),
        ("params.model > 'a'", "params.model does not support >"),
        ("attributes.run_id IN 'a'", "expected a list such as"),
        ("= 1", "expected a name such as metrics.loss"),
    ],
)
def test_an_invalid_filter_is_an_error(client: MlflowClient, searched: str, text: str, message: str) -> None:
    with pytest.raises(MlflowException) as caught:
        client.search_runs([searched], text)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert message in str(caught.value)


def names(runs: list[Run]) -> list[str]:
    return [run.info.run_name for run in runs]
