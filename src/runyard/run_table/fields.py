"""The fields that every run has, and how people may write them."""

from __future__ import annotations

# as they stand in a row, with what each is
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
# A run that an MLflow client deleted is kept, with this tag, and shown only to who asks for the tag.
STAGE, DELETED = "mlflow.lifecycleStage", "deleted"
GROUPS = ("params", "metrics", "tags")
TIMES = frozenset(name for name, kind in FIELDS.items() if kind == "time")
DURATIONS = frozenset(name for name, kind in FIELDS.items() if kind == "duration")
NUMBERS = frozenset(name for name, kind in FIELDS.items() if kind == "number")

SHORT = {
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
    """The field's own name; a name that is no field's is a parameter's, a metric's or a tag's, and stays bare."""
    group, dot, rest = name.partition(".")
    if dot and rest and SHORT.get(group.lower(), group.lower()) in GROUPS:
        return f"{SHORT.get(group.lower(), group.lower())}.{rest}"
    lowered = name.lower()
    if lowered in FIELDS:
        return lowered
    known = SHORT.get(lowered, "")
    return known if known in FIELDS else name
