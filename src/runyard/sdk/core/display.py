"""HTML and text of runs, experiments and workspaces for notebooks and terminals. All user text is escaped."""

from __future__ import annotations

import time
from typing import Any

from runyard.clock import duration_text

_MAX_METRICS = 20
_COLORS = {"Completed": "#1a7f37", "Failed": "#cf222e", "Canceled": "#9a6700", "Running": "#0969da"}


def run_html(view: dict[str, Any], metrics: dict[str, Any]) -> str:
    """Return a table of the run: identity and end first, then the last value of each metric."""
    rows = [
        ("Experiment", view["experiment"]),
        ("Id", view["run_id"]),
        ("Type", view["type"] or ""),
        ("Status", _Status(view["status"])),
        ("Why", explanation(view)),
        ("Took", duration(view)),
        ("Tags", ", ".join(key if value is None else f"{key}: {value}" for key, value in view["tags"].items())),
        ("Metrics", _metrics(metrics)),
        ("Folder", view["folder"]),
    ]
    cells = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in rows if value)
    return f'<table style="text-align:left">{cells}</table>'


def runs_html(title: str, runs: list[dict[str, Any]], more: bool) -> str:
    head = "".join(_cell("th", name) for name in ("Run", "Status", "Took", "Why"))
    rows = "".join(
        f"<tr>{_cell('td', run['run_id'])}{_cell('td', _Status(run['status']))}{_cell('td', duration(run))}"
        f"{_cell('td', explanation(run))}</tr>"
        for run in runs
    )
    note = "<p>and older ones: <code>experiment.to_dataframe()</code> has them all</p>" if more else ""
    table = f'<table style="text-align:left"><tr>{head}</tr>{rows}</table>{note}' if runs else "<p>no runs yet</p>"
    return f"<p><strong>{_escape(title)}</strong></p>{table}"


def table_html(rows: dict[str, Any]) -> str:
    cells = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in rows.items())
    return f'<table style="text-align:left">{cells}</table>'


def run_text(view: dict[str, Any], metrics: dict[str, Any], log_tail: str) -> str:
    """Return the same information for a terminal."""
    lines = [f"{view['experiment']} · {view['run_id']}", "  ".join(filter(None, (view["status"], duration(view))))]
    if explanation(view):
        lines += [f"why: {explanation(view)}"]
    if metrics:
        lines += [f"metrics: {_metrics(metrics)}"]
    if log_tail:
        lines += ["log:", *(f"  {line}" for line in log_tail.splitlines()[-10:])]
    return "\n".join(lines) + "\n"


def explanation(view: dict[str, Any]) -> str:
    """Return the error of a run that failed, or the current activity of one that has not ended."""
    end = view["end"] or {}
    if view["status"] in ("Failed", "Canceled"):
        return str(end.get("message") or end.get("reason") or "")
    return "" if view["ended_at"] else str(view["activity"])


def duration(view: dict[str, Any]) -> str:
    if not view["started_at"]:
        return ""
    return duration_text(max((view["ended_at"] or time.time()) - view["started_at"], 0.0))


def _metrics(metrics: dict[str, Any]) -> str:
    texts = [f"{name} {_value(value)}" for name, value in list(metrics.items())[:_MAX_METRICS]]
    more = len(metrics) - len(texts)
    return ", ".join(texts) + (f", and {more} more" if more else "")


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_value(item)}" for name, item in value.items()) + "}"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "…"


class _Status(str):
    """A status, displayed in its color."""


def _cell(tag: str, value: Any) -> str:
    text = _escape(str(value))
    if isinstance(value, _Status):
        text = f'<span style="color:{_COLORS.get(value, "inherit")};font-weight:600">{text}</span>'
    return f'<{tag} style="text-align:left">{text}</{tag}>'


def _escape(text: str) -> str:
    from html import escape  # takes 1.4 ms, and only notebooks need it

    return escape(text)
