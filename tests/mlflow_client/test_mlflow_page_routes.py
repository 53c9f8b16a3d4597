"""The requests of MLflow's own page, without a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mlflow
import pytest
import requests
from mlflow import MlflowClient
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.meta_dataset import MetaDataset

GET_RUN = """
query GetRun($data: MlflowGetRunInput!) @component(name: "MLflow.ExperimentRunTracking") {
  mlflowGetRun(input: $data) {
    __typename
    apiError { code message helpUrl }
    run {
      info { runName status runUuid experimentId startTime endTime }
      experiment { name lifecycleStage tags { key value } }
      modelVersions { name version }
      data { metrics { key value step timestamp } params { key value } }
      inputs { datasetInputs { dataset { name digest } tags { key value } } }
    }
  }
}
"""


class Page:
    """Requests as the page sends them, below its address."""

    def __init__(self, tracking: str) -> None:
        self._url = f"{tracking}/mlflow"
        self._headers = {"Authorization": f"Bearer {os.environ['MLFLOW_TRACKING_TOKEN']}"}

    def get(self, path: str, /, **query: str) -> requests.Response:
        return requests.get(f"{self._url}/{path}", params=query, headers=self._headers, timeout=60)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        response = requests.post(f"{self._url}/{path}", json=body, headers=self._headers, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    def graphql(self, query: str, **variables: Any) -> Any:
        return self.post("graphql", {"query": query, "variables": variables, "operationName": None})["data"]

    def upload(self, content: bytes, **query: str) -> requests.Response:
        url = f"{self._url}/ajax-api/2.0/mlflow/upload-artifact"
        return requests.post(url, content, params=query, headers=self._headers, timeout=60)


@pytest.fixture
def page(tracking: str) -> Page:
    return Page(tracking)


def test_a_run_by_graphql(page: Page, client: MlflowClient, experiment_id: str) -> None:
    with mlflow.start_run(run_name="deep") as started:
        mlflow.log_metrics({"loss": 0.5, "odd": float("nan")}, step=7)
        mlflow.log_param("depth", 3)
        mlflow.log_input(MetaDataset(CodeDatasetSource({}), name="digits"), context="training")
        mlflow.log_text("x", "net/weights.txt")
    run_id, name = started.info.run_id, f"net-{os.urandom(3).hex()}"
    client.create_registered_model(name)
    client.create_model_version(name, f"runs:/{run_id}/net", run_id)
    result = page.graphql(GET_RUN, data={"runId": run_id})["mlflowGetRun"]
    assert result["apiError"] is None
    run = result["run"]
    assert (run["info"]["runName"], run["info"]["status"], run["info"]["runUuid"]) == ("deep", "FINISHED", run_id)
    assert int(run["info"]["startTime"]) <= int(run["info"]["endTime"])
    assert run["experiment"]["name"] == client.get_experiment(experiment_id).name
    metrics = {metric["key"]: (metric["value"], metric["step"]) for metric in run["data"]["metrics"]}
    assert metrics == {"loss": (0.5, "7"), "odd": (None, "7")}
    assert run["data"]["params"] == [{"key": "depth", "value": "3"}]
    assert run["inputs"]["datasetInputs"][0]["dataset"]["name"] == "digits"
    assert run["modelVersions"] == [{"name": name, "version": "1"}]


def test_other_queries_by_graphql(page: Page, client: MlflowClient, experiment_id: str) -> None:
    with mlflow.start_run() as started:
        for step in range(3):
            mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
        mlflow.log_text("x", "notes/a.txt")
    run_id = started.info.run_id
    query = (
        "query Many($runs: X, $history: X, $files: X, $experiment: X) {"
        " mlflowSearchRuns(input: $runs) { runs { info { runId } experiment { experimentId } } }"
        " mlflowGetMetricHistoryBulkInterval(input: $history) { metrics { runId key value step } }"
        " mlflowListArtifacts(input: $files) { rootUri files { path isDir fileSize } }"
        " mlflowGetExperiment(input: $experiment) { experiment { experimentId } } }"
    )
    data = page.graphql(
        query,
        runs={"experimentIds": [experiment_id], "filter": "metrics.loss < 1"},
        history={"runIds": [run_id], "metricKey": "loss", "startStep": 1, "endStep": 9},
        files={"runId": run_id, "path": "notes"},
        experiment={"experimentId": experiment_id},
    )
    assert data["mlflowSearchRuns"]["runs"] == [
        {"info": {"runId": run_id}, "experiment": {"experimentId": experiment_id}}
    ]
    assert [metric["step"] for metric in data["mlflowGetMetricHistoryBulkInterval"]["metrics"]] == ["1", "2"]
    assert data["mlflowListArtifacts"]["files"] == [{"path": "notes/a.txt", "isDir": False, "fileSize": "1"}]
    assert data["mlflowGetExperiment"]["experiment"]["experimentId"] == experiment_id


def test_errors_of_graphql_name_the_problem(page: Page) -> None:
    error = page.graphql(GET_RUN, data={"runId": "nobody"})["mlflowGetRun"]["apiError"]
    assert error["code"] == "RESOURCE_DOES_NOT_EXIST"
    assert "nobody" in error["message"]
    for body in ({"query": "{ unknown }"}, {"query": "{"}, {"query": "{ a }", "variables": 3}, {}):
        response = requests.post(f"{page._url}/graphql", json=body, headers=page._headers, timeout=60)
        assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_files_of_runs_versions_and_logged_models(
    page: Page, client: MlflowClient, experiment_id: str, tmp_path: Path
) -> None:
    (tmp_path / "MLmodel").write_text("flavors: {}\n")
    with mlflow.start_run() as started:
        mlflow.log_text("hello", "net/notes & more.txt")
        model = mlflow.initialize_logged_model(name="net")
        client.log_model_artifact(model.model_id, str(tmp_path / "MLmodel"))
        mlflow.finalize_logged_model(model.model_id, "READY")
    run_id, name = started.info.run_id, f"net-{os.urandom(3).hex()}"
    client.create_registered_model(name)
    client.create_model_version(name, f"runs:/{run_id}/net", run_id)
    response = page.get("get-artifact", run_uuid=run_id, path="net/notes & more.txt")
    assert response.text == "hello"
    assert response.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in response.headers["content-security-policy"]
    assert page.get("model-versions/get-artifact", name=name, version="1", path="notes & more.txt").text == "hello"
    logged = f"ajax-api/2.0/mlflow/logged-models/{model.model_id}/artifacts"
    assert page.get(f"{logged}/files", artifact_file_path="MLmodel").text == "flavors: {}\n"
    assert page.get(f"{logged}/directories").json()["files"][0]["path"] == "MLmodel"
    for response in (
        page.get("get-artifact", run_uuid=run_id, path="missing"),
        page.get("get-artifact", run_uuid=run_id, path="../../token"),
        page.get("get-artifact", run_uuid="nobody", path="x"),
        page.get("model-versions/get-artifact", name=name, version="1", path="missing"),
        page.get("model-versions/get-artifact", name="nobody", version="1", path="x"),
        page.get(f"{logged}/files", artifact_file_path="missing"),
        page.get("ajax-api/2.0/mlflow/logged-models/m-nobody/artifacts/directories"),
    ):
        assert (response.status_code, response.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST"), response.url


def test_an_uploaded_file_belongs_to_the_run(page: Page, client: MlflowClient, experiment_id: str) -> None:
    run_id = client.create_run(experiment_id).info.run_id
    assert page.upload(b"{}", run_uuid=run_id, path="charts/one.json").status_code == 200
    assert page.get("get-artifact", run_id=run_id, path="charts/one.json").text == "{}"
    for response in (
        page.upload(b"", run_uuid=run_id, path="empty"),
        page.upload(b"x" * (10 << 20) + b"x", run_uuid=run_id, path="large"),
        page.upload(b"x", run_uuid=run_id),
        page.upload(b"x", run_uuid=run_id, path="../x"),
    ):
        assert (response.status_code, response.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), response.url
    client.set_terminated(run_id)


def test_datasets_of_experiments(page: Page, experiment_id: str) -> None:
    dataset = MetaDataset(CodeDatasetSource({}), name="digits")
    for context in ("training", "test", "training"):
        with mlflow.start_run():
            mlflow.log_input(dataset, context=context)
    path = "ajax-api/2.0/mlflow/experiments/search-datasets"
    summaries = page.post(path, {"experiment_ids": [experiment_id]})["dataset_summaries"]
    assert sorted((item["name"], item["digest"], item["context"]) for item in summaries) == [
        ("digits", dataset.digest, "test"),
        ("digits", dataset.digest, "training"),
    ]
    assert page.post(path, {"experiment_ids": ["nowhere"]}) == {"dataset_summaries": []}


def test_the_routes_of_the_page_need_the_token(tracking: str) -> None:
    for prefix in ("", "/mlflow"):
        for path in (
            "get-artifact?run_id=a&path=b",
            "model-versions/get-artifact?name=a&version=1&path=b",
            "ajax-api/2.0/mlflow/experiments/search?max_results=1",
            "ajax-api/3.0/mlflow/server-info",
            "ajax-api/2.0/mlflow-artifacts/artifacts/a/b",
        ):
            assert requests.get(f"{tracking}{prefix}/{path}", timeout=60).status_code == 401, path
        assert requests.post(f"{tracking}{prefix}/graphql", json={"query": "{ a }"}, timeout=60).status_code == 401


def test_without_the_package_the_page_says_how_to_install_it(tracking: str) -> None:
    response = requests.get(f"{tracking}/mlflow", timeout=60)
    assert response.status_code == 404
    assert "pip install --no-deps --target" in response.text
    assert requests.get(f"{tracking}/mlflow/static-files/..%2F..%2Ftoken", timeout=60).status_code == 404
