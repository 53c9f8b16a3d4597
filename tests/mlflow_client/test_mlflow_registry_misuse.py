"""Requests to the registry that no client sends."""

from __future__ import annotations

import os
from typing import Any

import pytest
import requests

from runyard.server.mlflow.registry.endpoints import ENDPOINTS

_BODY = {
    "name": "none",
    "new_name": "none",
    "version": "1",
    "alias": "a",
    "stage": "None",
    "source": "models:/none/1",
    "key": "k",
    "value": "v",
    "url": "https://192.0.2.1/",
    "archive_existing_versions": False,
}
_HOSTILE: list[dict[str, Any]] = [
    {"name": {"a": 1}, "version": [], "filter": 1},
    {"name": "\0", "filter": "\0", "url": "https://\0"},
    {"name": "../..", "new_name": "..", "source": "runs:/../../etc"},
    {"version": "9" * 400, "page_token": "9" * 400, "max_results": "9" * 400},
    {"tags": [None], "stages": [None], "events": [{"entity": {}, "action": []}]},
    {"tags": [{"key": {}, "value": []}], "stages": "None", "events": "all"},
    {"filter": "name = 'a' OR", "order_by": ["name; DROP TABLE models"], "source": "mlflow-artifacts:/models//1"},
    {"source": "http://[", "url": "http://[", "status": "UNKNOWN", "events": [{}] * 1000},
]


@pytest.mark.parametrize("endpoint", [*ENDPOINTS, "POST /model-versions/create"])
def test_hostile_requests_are_answered_with_a_code(tracking: str, endpoint: str) -> None:
    method, _, path = endpoint.partition(" ")
    headers = {"Authorization": f"Bearer {os.environ['MLFLOW_TRACKING_TOKEN']}"}
    url = f"{tracking}/api/2.0/mlflow{path.format(webhook_id='..%2F')}"
    for fields in _HOSTILE:
        body = {**_BODY, **fields}
        content = {"params": {key: str(value) for key, value in body.items()}} if method == "GET" else {"json": body}
        response = requests.request(method, url, headers=headers, timeout=20, **content)  # type: ignore[arg-type]
        assert response.status_code in (200, 400, 404), (fields, response.text)
        assert response.status_code == 200 or response.json()["error_code"], fields
