"""Extreme values in every field and parameter of every route: none is an error of the yard."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from runyard import Experiment, Workspace
from support import a_home, logged_errors

pytestmark = pytest.mark.real

DEEP = "[" * 400 + "]" * 400
VALUES = [
    *("-1", "1e999", "NaN", "1" + "0" * 400, "9223372036854775808", '"\\u0000"', '"../.."', f'"{"x" * 5000}"'),
    *("null", '"\\ud800"', "[null]", '{"kind": []}', DEEP),
]
STREAMS = ("/api/live",)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("yard", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


@pytest.fixture(scope="module")
def workspace_of_module() -> Iterator[Workspace]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        yield Workspace()
        assert logged_errors(home) == []


def example(schema: dict[str, Any], document: dict[str, Any], depth: int = 0) -> Any:
    """A value that the schema allows."""
    if "$ref" in schema:
        return example(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return example(schema[word][0], document, depth + 1)
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type")
    if kind == "object" and depth < 6:
        return {name: example(field, document, depth + 1) for name, field in schema.get("properties", {}).items()}
    return {"string": "a", "integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}.get(str(kind))


def bodies(schema: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    """The JSON of requests that each have one extreme value."""
    valid = example(schema, document)
    yield from VALUES
    if isinstance(valid, dict):
        for name in valid:
            rest = "".join(f", {json.dumps(other)}: {json.dumps(valid[other])}" for other in valid if other != name)
            yield from (f"{{{json.dumps(name)}: {value}{rest}}}" for value in VALUES)


def requests(document: dict[str, Any], run_id: str) -> Iterator[tuple[str, str, str]]:
    for path, item in document["paths"].items():
        if path in STREAMS:
            continue
        for method, operation in item.items():
            target = re.sub(r"\{\w+\}", "a", path.replace("{run_id}", run_id))
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                yield from ((method, target, body) for body in bodies(content["schema"], document))
            for parameter in operation.get("parameters", ()):
                words = [quote(str(json.loads(value)), safe="") for value in VALUES[:8]]
                if parameter["in"] == "query":
                    yield from ((method, f"{target}?{parameter['name']}={word}", "") for word in words)
                elif parameter["in"] == "path" and method != "put":
                    place = f"{{{parameter['name']}}}"
                    rest = [re.sub(r"\{\w+\}", "a", path.replace(place, word)) for word in words if word]
                    yield from ((method, target_path, "{}" if content else "") for target_path in rest)


def test_no_extreme_value_is_an_error_of_the_yard(workspace_of_module: Workspace) -> None:
    experiment = Experiment(workspace_of_module, "extreme")
    run = experiment.start_logging(snapshot_directory=None)
    run.log("loss", 0.5)
    connection = UnixConnection(workspace_of_module.home / "yard.sock")
    document = workspace_of_module.connection.get("/api/openapi.json")
    failures = []
    for method, target, body in requests(document, run.id):
        if re.search(r"/(follow|live)(\?|$)", target) or target == "/api/studio":
            continue
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            connection.request(method.upper(), target, body.encode(), headers)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except OSError as error:  # the yard has closed the connection
            connection.close()
            status, answer = 599, str(error).encode()
        if status >= 500:
            failures.append((method, target[:100], body[:200], answer[:200]))
    connection.close()
    assert not failures, "\n".join(map(str, failures))
    workspace_of_module.connection.get("/api/runs")
    run.complete()
