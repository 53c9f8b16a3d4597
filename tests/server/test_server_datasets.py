"""Invalid dataset requests: each returns a typed error."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import Workspace
from runyard.errors import UserErrorException

SOURCE = {"datastore": "workspaceblobstore", "path": "x"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "odd"}, "unknown kind of dataset: 'odd'"),
        ({"kind": "tabular"}, "needs a reading"),
        ({"sources": []}, "at least one source"),
        ({"sources": [None]}, "sources must be an object, got None"),
        ({"sources": [{**SOURCE, "url": "http://x/y"}]}, "either a datastore or a url"),
        ({"sources": [{"url": "file:///etc/passwd"}]}, "is not a web URL"),
        ({"sources": [{**SOURCE, "path": "../.."}]}, "leads out of the datastore"),
        ({"sources": [{**SOURCE, "path": "*" * 40 + "x"}]}, "no files at"),
        ({"sources": [{"datastore": "nowhere", "path": "x"}]}, "no datastore named 'nowhere'"),
        ({"steps": [{"kind": "take", "count": 1.5}]}, "must be integers"),
        ({"steps": [{"kind": "take", "count": -1}]}, "must not be negative"),
        ({"steps": [{"kind": "keep", "columns": ["a"]}]}, "unknown step for a file dataset: 'keep'"),
        ({"colour": "red"}, "has no field 'colour'"),
    ],
)
def test_an_invalid_definition_is_an_error(workspace: Workspace, changes: dict[str, Any], message: str) -> None:
    body = {"definition": {"kind": "file", "sources": [SOURCE], **changes}}
    with pytest.raises(UserErrorException, match=message):
        workspace.connection.post("/api/datasets/files", body)


@pytest.mark.parametrize(
    ("route", "query", "message"),
    [
        ("/api/datasets/one", {"name": "x", "version": 10**30}, "no dataset 'x'"),
        ("/api/datasets/one", {}, "either the name or the id"),
        ("/api/datasets/page", {"id": "x"}, "no dataset with the id 'x'"),
        ("/api/lineage", {}, "exactly one of run, model and dataset"),
        ("/api/lineage", {"dataset": "x:" + "9" * 40}, "no dataset 'x'"),
        ("/api/lineage", {"model": "x:" + "9" * 40}, "no model 'x:9"),
        ("/api/lineage", {"run": "x"}, "no run 'x'"),
        ("/api/diff/data", {"a": "x", "b": "y"}, "no run 'x'"),
    ],
)
def test_a_missing_object_is_an_error(workspace: Workspace, route: str, query: dict[str, Any], message: str) -> None:
    with pytest.raises(UserErrorException, match=message):
        workspace.connection.get(route, **query)
