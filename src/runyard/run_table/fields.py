"""The fields of every run, and their aliases in queries."""

from __future__ import annotations

# name in a row -> kind
FIELDS: dict[str, str] = {
    "run_id": "text",
    "number": "number",
    "experiment": "text",
    "name": "text",
    "status": "text",
    "target": "text",
    "type": "text",
    "parent_id": "text",
    "submitted_by": "text",
    "created_at": "time",
    "started_at": "time",
    "ended_at": "time",
    "duration_s": "duration",
    "nodes": "number",
    "ranks": "number",
    "reason": "text",
}
# The tag of runs that an MLflow client deleted. They are hidden unless the query contains the tag.
STAGE, DELETED = "mlflow.lifecycleStage", "deleted"
GROUPS = ("params", "metrics", "tags")
TIMES = frozenset(name for name, kind in FIELDS.items() if kind == "time")
DURATIONS = frozenset(name for name, kind in FIELDS.items() if kind == "duration")
NUMBERS = frozenset(name for name, kind in FIELDS.items() if kind == "number")

ALIASES = {
    "id": "run_id",
    "run": "run_id",
    "display_name": "name",
    "created": "created_at",
    "started": "started_at",
    "ended": "ended_at",
    "duration": "duration_s",
    "took": "duration_s",
    "parent": "parent_id",
    "user": "submitted_by",
    "compute": "target",
    "param": "params",
    "metric": "metrics",
    "tag": "tags",
}


def canonical(name: str) -> str:
    """Resolve aliases of fields and groups; names of parameters, metrics and tags are returned unchanged."""
    group, dot, rest = name.partition(".")
    if dot and rest and ALIASES.get(group.lower(), group.lower()) in GROUPS:
        return f"{ALIASES.get(group.lower(), group.lower())}.{rest}"
    lowered = name.lower()
    if lowered in FIELDS:
        return lowered
    field = ALIASES.get(lowered, "")
    return field if field in FIELDS else name
