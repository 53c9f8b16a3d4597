"""The part of GraphQL that MLflow's page uses, and the translation of its paths."""

from __future__ import annotations

import pytest

from runyard.server.mlflow.errors import MlflowError
from runyard.server.mlflow.ui.graphql_query import Selection, parse_query
from runyard.server.mlflow.ui.paths import api_path

QUERY = """
# what the page of a run requests
query GetRun($data: MlflowGetRunInput!, $n: [Int!] = [1]) @component(name: "MLflow.Run") {
  first: mlflowGetRun(input: $data) {
    run { ...Parts, ... on MlflowRun @include(if: true) { data { metrics { key, value } } } }
  }
  mlflowSearchRuns(input: {filter: "a = \\"b\\"", maxResults: -5, orderBy: ["x", "y"], all: true, view: ALL, z: null}) {
    runs { info { runId } }
  }
}
fragment Parts on MlflowRun { info { runId } }
"""


def test_fields_aliases_arguments_and_fragments_are_parsed() -> None:
    first, second = parse_query(QUERY, {"data": {"runId": "a"}}, "GetRun")
    assert (first.name, first.key, first.arguments) == ("mlflowGetRun", "first", {"input": {"runId": "a"}})
    (run,) = first.fields
    assert [(part.name, names(part)) for part in run.fields] == [("info", ["runId"]), ("data", ["metrics"])]
    assert second.arguments["input"] == {
        "filter": 'a = "b"',
        "maxResults": -5,
        "orderBy": ["x", "y"],
        "all": True,
        "view": "ALL",
        "z": None,
    }
    assert names(second) == ["runs"]


def test_an_operation_without_a_name_is_the_only_one() -> None:
    assert [field.name for field in parse_query("{ a b }", {}, None)] == ["a", "b"]
    with pytest.raises(MlflowError, match="no operation None"):
        parse_query("query A { a } query B { b }", {}, None)
    with pytest.raises(MlflowError, match="no operation 'C'"):
        parse_query("query A { a }", {}, "C")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "no operation"),
        ("{ a", "at its end: expected a name"),
        ("{ a(", "at its end: expected a name"),
        ("query A($x: Int { a }", "expected \\)"),
        ("subscription A { a }", "expected query, mutation or fragment"),
        ("{ a(x: ) }", "expected a value"),
        ("{ ...Missing }", "no fragment 'Missing'"),
        ('{ a(x: "open) }', "invalid GraphQL query"),
        ("{ ...A } fragment A on X { ...A }", "deeper than 20 levels"),
        ("{ a " * 30 + "}" * 30, "deeper than 20 levels"),
        ("{ a(x: " + "[" * 30 + "]" * 30 + ") }", "expected a value"),
        (
            "{ ...A } fragment A on X {" + " ...B" * 50 + "} fragment B on X {" + " a" * 50 + "}",
            "more than 2,000 fields",
        ),
        ("#" * 30_000, "can have 20,000 characters"),
    ],
)
def test_an_invalid_query_is_an_error(query: str, message: str) -> None:
    with pytest.raises(MlflowError, match=message):
        parse_query(query, {}, None)


def test_paths_of_the_page_are_translated_and_others_are_not() -> None:
    translations = {
        "/ajax-api/2.0/mlflow/runs/search": "/api/2.0/mlflow/runs/search",
        "/mlflow/ajax-api/2.0/mlflow/runs/search": "/api/2.0/mlflow/runs/search",
        "/mlflow/ajax-api/3.0/mlflow/server-info": "/api/3.0/mlflow/server-info",
        "/mlflow/ajax-api/2.0/mlflow-artifacts/artifacts/a": "/api/2.0/mlflow-artifacts/artifacts/a",
        "/mlflow/get-artifact": "/api/2.0/mlflow/get-artifact",
        "/model-versions/get-artifact": "/api/2.0/mlflow/model-versions/get-artifact",
        "/mlflow/graphql": "/api/2.0/mlflow/graphql",
    }
    assert {path: api_path(path) for path in translations} == translations
    for path in (
        "/",
        "/mlflow",
        "/mlflow/",
        "/mlflow/static-files/a.js",
        "/runs/graphql",
        "/ajax-api/studio",
        "/api/runs",
    ):
        assert api_path(path) == path


def names(selection: Selection) -> list[str]:
    return [field.name for field in selection.fields]
