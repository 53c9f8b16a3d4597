"""Searching runs as MLflow does: its own code, which is in the client too, says what must be found."""

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
def made() -> dict[str, str]:
    return {}


@pytest.fixture
def some(client: MlflowClient, made: dict[str, str], shared_home: object) -> str:
    """An experiment with six runs of all sorts, for all tests of this file."""
    if made:
        return made["id"]
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
    made["id"] = experiment_id
    return experiment_id


@pytest.mark.parametrize("text", FILTERS)
def test_a_filter_finds_what_mlflow_finds(client: MlflowClient, some: str, text: str) -> None:
    everything = list(client.search_runs([some]))
    assert len(everything) == 6
    assert names(client.search_runs([some], text)) == names(SearchUtils.filter(everything, text))


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_an_order_is_that_of_mlflow(client: MlflowClient, some: str, order: list[str]) -> None:
    everything = list(client.search_runs([some]))
    assert names(client.search_runs([some], order_by=order)) == names(SearchUtils.sort(everything, order))


def test_lists_of_ids_are_asked_for_and_excluded(client: MlflowClient, some: str) -> None:
    runs = client.search_runs([some], order_by=["attributes.run_name"])
    listed = ", ".join(f"'{run.info.run_id}'" for run in runs[:2])
    assert names(client.search_runs([some], f"attributes.run_id IN ({listed})")) == ["run 1", "run 0"]
    assert len(client.search_runs([some], f"attributes.run_id NOT IN ({listed})")) == 4


def test_pages_follow_each_other_without_gaps(client: MlflowClient, some: str) -> None:
    found, token = [], None
    while True:
        page = client.search_runs([some], max_results=2, page_token=token, order_by=["metrics.loss"])
        found += names(page)
        token = page.token
        if not token:
            break
    assert found == ["run 4", "run 3", "run 2", "run 1", "run 0", "run 5"]


def test_several_experiments_are_searched_at_once(client: MlflowClient, some: str, experiment_id: str) -> None:
    with mlflow.start_run(run_name="elsewhere"):
        mlflow.log_metric("loss", 0.1)
    found = names(client.search_runs([some, experiment_id, "of-another-yard"], "metrics.loss < 0.3"))
    assert sorted(found) == ["elsewhere", "run 4"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metrics.loss <", "at its end: expected a number to compare 'loss' with"),
        ("metrics.loss < 'a'", """at "'a'": expected a number"""),
        ("params.model = cnn", "at 'cnn': expected a text in quotes"),
        ("metrics.loss < 1 OR params.model = 'cnn'", "expected AND"),
        ("loss < 1", "'loss' in 'loss < 1' is no attribute; there are run_id"),
        ("model.x = 1", "metrics, params, tags, attributes and datasets are"),
        ("metrics.loss LIKE 'a'", "LIKE cannot be asked of metrics.loss"),
        ("params.model > 'a'", "> cannot be asked of params.model"),
        ("attributes.run_id IN 'a'", "expected a list such as"),
        ("= 1", "expected a name such as metrics.loss"),
    ],
)
def test_a_filter_that_is_none_is_explained(client: MlflowClient, some: str, text: str, said: str) -> None:
    with pytest.raises(MlflowException) as caught:
        client.search_runs([some], text)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert said in str(caught.value)


def names(runs: list[Run]) -> list[str]:
    return [run.info.run_name for run in runs]
