"""Invalid model requests: each returns a typed error."""

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
def test_an_unknown_version_is_an_error(workspace: Workspace, model: Model, version: str) -> None:
    for send in (
        lambda: workspace.connection.get(f"/api/models/{model.name}/versions/{version}"),
        lambda: workspace.connection.delete(f"/api/models/{model.name}/versions/{version}"),
        lambda: workspace.connection.get(
            f"/api/models/{model.name}/versions/1/compare", other=f"{model.name}:{version}"
        ),
    ):
        with pytest.raises(RunyardException) as caught:
            send()
        assert "internal error" not in caught.value.message
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
def test_an_invalid_request_is_a_typed_error(workspace: Workspace, model: Model, path: str, body: Any) -> None:
    with pytest.raises(RunyardException) as caught:
        workspace.connection.post(path.replace("{model}", model.name), body)
    assert "internal error" not in caught.value.message
    assert "HTTP status" not in caught.value.message


def test_model_files_cannot_escape_their_folder(workspace: Workspace, model: Model) -> None:
    for path in ("../../../yard.db", "/etc/passwd", "..", "", "model.pt/..", "model.pt\0"):
        with pytest.raises((UserErrorException, RunyardException)):
            workspace.connection.read(f"/api/models/{model.name}/versions/1/files/{path}")
    with pytest.raises(UserErrorException, match="expected a JSON object"):
        workspace.connection.get("/api/models", tags="{")
    with pytest.raises(WebserviceException, match="no model named"):
        workspace.connection.get("/api/models/nothing-there")
