"""Describes the data of a run, and whether a rerun used the same data as the original."""

from __future__ import annotations

from typing import Any

from runyard.client.connection import Connection
from runyard.errors import RunNotFound


def data_lines(connection: Connection, view: dict[str, Any]) -> list[str]:
    uses = (view["spec"] or {}).get("data") or ()
    original = view["properties"].get("runyard.rerun_of")
    digests = _digests(connection, original) if uses and original else {}
    return [_line(use, str(original), digests) for use in uses]


def _line(use: dict[str, Any], original: str, original_digests: dict[str, str]) -> str:
    dataset = use["dataset"]
    if dataset is None:
        path = "/".join(part for part in (use["datastore"], use["path"]) if part)
        return (
            f"{use['name']}: {path} ({use['mode']})" if use["name"] != use["datastore"] else f"{path} ({use['mode']})"
        )
    label = f"dataset {dataset['name']}:{dataset['version']}" if dataset["name"] else f"dataset {dataset['id'][:8]}"
    digest = dataset["digest"] or ""
    text = f"{use['name']}: {label} ({'read' if dataset['direct'] else use['mode']}), digest {digest[:12] or 'unknown'}"
    if use["name"] not in original_digests or not digest:
        return text
    is_same = original_digests[use["name"]] == digest
    return f"{text}, " + (f"same data as {original}" if is_same else f"different data than {original}")


def _digests(connection: Connection, run_id: str) -> dict[str, str]:
    try:
        spec = connection.get(f"/api/runs/{run_id}")["spec"] or {}
    except RunNotFound:
        return {}
    return {use["name"]: use["dataset"]["digest"] for use in spec.get("data") or () if use["dataset"]}
