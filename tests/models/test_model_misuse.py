"""Requests about models that no client of ours would send: each gets an answer that a program can read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import Model, Workspace
from runyard.errors import RunyardException, UserErrorException, WebserviceException

VERSIONS = [
    "0",
    "-1",
    pytest.param("9" * 40, id="40 digits"),
    pytest.param("9" * 5000, id="5000 digits"),
    "1.5",
    "champion",
    "%00",
    "٣",
    "latest ",
    "..",
    pytest.param("a" * 500, id="long"),
]


@pytest.fixture
def model(workspace: Workspace, name: str, weights: Callable[[str], Path]) -> Model:
    return Model.register(workspace, weights("x"), name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_that_is_not_there_is_said_so(workspace: Workspace, model: Model, version: str) -> None:
    for ask in (
        lambda: workspace.connection.get(f"/api/models/{model.name}/versions/{version}"),
        lambda: workspace.connection.delete(f"/api/models/{model.name}/versions/{version}"),
        lambda: workspace.connection.get(
            f"/api/models/{model.name}/versions/1/compare", other=f"{model.name}:{version}"
        ),
    ):
        with pytest.raises(RunyardException) as refused:
            ask()
        assert "the yard failed" not in refused.value.message
    assert Model(workspace, model.name).version == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/models", {}),
        ("/api/models", {"registration_id": "r", "name": "x"}),
        ("/api/models", {"registration_id": "r", "name": "x", "upload_id": "nothing"}),
        ("/api/models", {"registration_id": "r", "name": "x", "upload_id": "../../etc"}),
        ("/api/models", {"registration_id": "r", "name": "x", "run_path": "outputs"}),
        ("/api/models", {"registration_id": "r", "name": "x", "run_id": "nothing", "run_path": "outputs"}),
        ("/api/models", {"registration_id": "r", "name": "x", "upload_id": "u", "tags": [1]}),
        ("/api/models", {"registration_id": "r", "name": "x", "upload_id": "u", "tags": {"a": {"b": 1}}}),
        ("/api/models/{model}/versions/1/stage", {}),
        ("/api/models/{model}/versions/1/stage", {"stage": "perfect"}),
        ("/api/models/{model}/aliases/champion", {"version": 7}),
        ("/api/models/{model}/aliases/champion", {"version": 10**30}),
        ("/api/models/{model}/aliases/a b", {"version": 1}),
        ("/api/model-uploads/u1", {"name": "m", "source": "/nowhere/at/all"}),
        ("/api/model-uploads/u1", {"name": "m", "source": "/"}),
        ("/api/model-uploads/u1", {"name": "../m", "source": "/etc/hostname"}),
        ("/api/model-uploads/u:1", {"name": "m", "source": "/etc/hostname"}),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(workspace: Workspace, model: Model, path: str, body: Any) -> None:
    with pytest.raises(RunyardException) as refused:
        workspace.connection.post(path.replace("{model}", model.name), body)
    assert "the yard failed" not in refused.value.message
    assert "the yard answered" not in refused.value.message


def test_files_of_a_model_lead_nowhere_else(workspace: Workspace, model: Model) -> None:
    for path in ("../../../yard.db", "/etc/passwd", "..", "", "model.pt/..", "model.pt\0"):
        with pytest.raises((UserErrorException, RunyardException)):
            workspace.connection.read(f"/api/models/{model.name}/versions/1/files/{path}")
    with pytest.raises(UserErrorException, match="not JSON"):
        workspace.connection.get("/api/models", tags="{")
    with pytest.raises(WebserviceException, match="no model named"):
        workspace.connection.get("/api/models/nothing-there")
