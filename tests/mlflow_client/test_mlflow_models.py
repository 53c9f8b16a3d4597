"""Search for logged models by metrics of datasets, and what MLflow refuses for logged models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelStatus
from mlflow.exceptions import MlflowException

DIGITS, LETTERS = {"dataset_name": "digits"}, {"dataset_name": "letters"}


@pytest.fixture
def models(client: MlflowClient, experiment_id: str) -> str:
    """Models a to d: with metrics of two datasets, of one, without a dataset, and without metrics."""
    run_id = client.create_run(experiment_id).info.run_id
    values = {
        "a": [("digits", "1", 0.9), ("letters", "2", 0.1)],
        "b": [("digits", "3", 0.5)],
        "c": [(None, None, 0.7)],
        "d": [],
    }
    for name, metrics in values.items():
        model = client.create_logged_model(experiment_id, name=name, params={"depth": name * 2})
        for dataset_name, digest, value in metrics:
            client.log_metric(
                run_id,
                "accuracy",
                value,
                timestamp=1,
                dataset_name=dataset_name,
                dataset_digest=digest,
                model_id=model.model_id,
            )
    client.set_terminated(run_id)
    return experiment_id


@pytest.mark.parametrize(
    ("filter_string", "datasets", "names"),
    [
        (None, [DIGITS], "ab"),
        (None, [{**DIGITS, "dataset_digest": "1"}], "a"),
        (None, [LETTERS, {**DIGITS, "dataset_digest": "3"}], "ab"),
        (None, [{"dataset_name": "words"}], ""),
        ("metrics.accuracy > 0.4", None, "abc"),
        ("metrics.accuracy > 0.4", [DIGITS], "ab"),
        ("metrics.accuracy > 0.4", [LETTERS], ""),
        ("metrics.accuracy < 0.2", None, "a"),
        ("params.depth IN ('aa', 'dd')", None, "ad"),
        ("params.depth IN ('aa',)", None, "a"),
        ("status = 'PENDING' AND model_type = ''", None, "abcd"),
        ("status != 'PENDING'", None, ""),
        ("name = 'b' AND metrics.accuracy <= 0.5", [DIGITS], "b"),
    ],
)
def test_models_are_found_by_metrics_of_datasets(
    client: MlflowClient, models: str, filter_string: str | None, datasets: list[dict[str, str]] | None, names: str
) -> None:
    matches = client.search_logged_models([models], filter_string, datasets)
    assert sorted(match.name for match in matches) == list(names)


def test_models_are_sorted_by_the_metric_of_a_dataset(client: MlflowClient, models: str) -> None:
    def names(**order: object) -> str:
        results = client.search_logged_models([models], order_by=[{"field_name": "metrics.accuracy", **order}])
        return "".join(model.name for model in results)

    assert names(**DIGITS) == "badc"
    assert names(**DIGITS, ascending=False) == "abdc"
    assert names(**LETTERS)[0] == "a"
    by_time = client.search_logged_models([models], order_by=[{"field_name": "creation_timestamp", "ascending": True}])
    assert [model.name for model in by_time] == list("abcd")


def test_an_invalid_search_of_models_is_an_error(client: MlflowClient, models: str) -> None:
    for arguments in (
        {"datasets": [{"dataset_name": ""}]},
        {"filter_string": "datasets.name = 'digits'"},
        {"order_by": [{"field_name": "params.depth"}]},
        {"order_by": [{"field_name": "color"}]},
        {"max_results": -1},
    ):
        with pytest.raises(MlflowException) as caught:
            client.search_logged_models([models], **arguments)
        assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert client.search_logged_models(["of-another-yard"]) == []


def test_tags_that_a_model_does_not_have_and_unknown_models_are_errors(
    client: MlflowClient, experiment_id: str
) -> None:
    model = client.create_logged_model(experiment_id, name="net", tags={"team": "vision"})
    client.delete_logged_model_tag(model.model_id, "team")
    with pytest.raises(MlflowException, match="No tag with key 'team'") as caught:
        client.delete_logged_model_tag(model.model_id, "team")
    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"
    with pytest.raises(MlflowException, match="not found") as caught:
        client.finalize_logged_model("m-0", LoggedModelStatus.READY)
    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_a_model_of_an_experiment_with_a_location_is_stored_there(client: MlflowClient, tmp_path: Path) -> None:
    location = tmp_path / "artifacts"
    experiment_id = client.create_experiment(f"models {os.urandom(3).hex()}", artifact_location=str(location))
    model = client.create_logged_model(experiment_id, name="net")
    (tmp_path / "weights.bin").write_bytes(b"1234")
    client.log_model_artifact(model.model_id, str(tmp_path / "weights.bin"))
    assert model.artifact_location == f"{location}/models/{model.model_id}/artifacts"
    assert (Path(model.artifact_location) / "weights.bin").read_bytes() == b"1234"
    assert [file.path for file in client.list_logged_model_artifacts(model.model_id)] == ["weights.bin"]


def test_a_run_uses_a_dataset_once(client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    for context in ("training", "testing"):
        dataset = Dataset("digits", "1", "local", "{}")
        client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", context)])] * 2)
    client.log_inputs(run_id, [DatasetInput(Dataset("digits", "2", "local", "{}"))])
    client.set_terminated(run_id)
    inputs = client.get_run(run_id).inputs.dataset_inputs
    assert [(item.dataset.digest, [tag.value for tag in item.tags]) for item in inputs] == [
        ("1", ["training"]),
        ("2", []),
    ]
