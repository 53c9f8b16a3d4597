"""Requests about datasets that no client of ours would send: each gets an answer that a program can read."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import Workspace
from runyard.errors import UserErrorException

HERE = {"datastore": "workspaceblobstore", "path": "x"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "odd"}, "unknown kind of dataset: 'odd'"),
        ({"kind": "tabular"}, "needs a reading"),
        ({"sources": []}, "at least one source"),
        ({"sources": [None]}, "a place in a datastore, or a url"),
        ({"sources": [{**HERE, "url": "http://x/y"}]}, "a place in a datastore, or a url"),
        ({"sources": [{"url": "file:///etc/passwd"}]}, "is not a web URL"),
        ({"sources": [{**HERE, "path": "../.."}]}, "leads out of the datastore"),
        ({"sources": [{**HERE, "path": "*" * 40 + "x"}]}, "no files at"),
        ({"sources": [{"datastore": "nowhere", "path": "x"}]}, "no datastore named 'nowhere'"),
        ({"steps": [{"kind": "take", "count": 1.5}]}, "must be integers"),
        ({"steps": [{"kind": "take", "count": -1}]}, "must not be below 0"),
        ({"steps": [{"kind": "keep", "columns": ["a"]}]}, "unknown step for a file dataset: 'keep'"),
        ({"colour": "red"}, "has no field 'colour'"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(workspace: Workspace, changes: dict[str, Any], told: str) -> None:
    body = {"definition": {"kind": "file", "sources": [HERE], **changes}}
    with pytest.raises(UserErrorException, match=told):
        workspace.connection.post("/api/datasets/files", body)


@pytest.mark.parametrize(
    ("route", "query", "told"),
    [
        ("/api/datasets/one", {"name": "x", "version": 10**30}, "no dataset 'x'"),
        ("/api/datasets/one", {}, "by its name or by its id"),
        ("/api/datasets/page", {"id": "x"}, "no dataset with the id 'x'"),
        ("/api/lineage", {}, "by one of run, model and dataset"),
        ("/api/lineage", {"dataset": "x:" + "9" * 40}, "no dataset 'x'"),
        ("/api/lineage", {"model": "x:" + "9" * 40}, "no model 'x:9"),
        ("/api/lineage", {"run": "x"}, "no run 'x'"),
        ("/api/diff/data", {"a": "x", "b": "y"}, "no run 'x'"),
    ],
)
def test_what_is_not_there_is_told(workspace: Workspace, route: str, query: dict[str, Any], told: str) -> None:
    with pytest.raises(UserErrorException, match=told):
        workspace.connection.get(route, **query)
