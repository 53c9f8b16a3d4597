"""The data of a run in words: what it was given, and whether the run that it repeats had the same."""

from __future__ import annotations

from typing import Any

from runyard.client.connection import Connection
from runyard.errors import RunNotFound


def data_lines(connection: Connection, view: dict[str, Any]) -> list[str]:
    uses = (view["spec"] or {}).get("data") or ()
    earlier = view["properties"].get("runyard.rerun_of")
    before = _digests(connection, earlier) if uses and earlier else {}
    return [_line(use, str(earlier), before) for use in uses]


def _line(use: dict[str, Any], earlier: str, before: dict[str, str]) -> str:
    dataset = use["dataset"]
    if dataset is None:
        place = "/".join(part for part in (use["datastore"], use["path"]) if part)
        return (
            f"{use['name']}: {place} ({use['mode']})" if use["name"] != use["datastore"] else f"{place} ({use['mode']})"
        )
    named = f"dataset {dataset['name']}:{dataset['version']}" if dataset["name"] else f"dataset {dataset['id'][:8]}"
    digest = dataset["digest"] or ""
    words = (
        f"{use['name']}: {named} ({'read' if dataset['direct'] else use['mode']}), digest {digest[:12] or 'unknown'}"
    )
    if use["name"] not in before or not digest:
        return words
    return f"{words}, " + (
        f"the same as in {earlier}" if before[use["name"]] == digest else f"other data than {earlier}"
    )


def _digests(connection: Connection, run_id: str) -> dict[str, str]:
    try:
        spec = connection.get(f"/api/runs/{run_id}")["spec"] or {}
    except RunNotFound:
        return {}
    return {use["name"]: use["dataset"]["digest"] for use in spec.get("data") or () if use["dataset"]}
