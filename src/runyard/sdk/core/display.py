"""Runs, experiments and workspaces as notebooks and terminals show them. Whatever users wrote is escaped."""

from __future__ import annotations

import time
from typing import Any

from runyard.clock import duration_text

_METRICS_SHOWN = 20
_COLOURS = {"Completed": "#1a7f37", "Failed": "#cf222e", "Canceled": "#9a6700", "Running": "#0969da"}


def run_html(view: dict[str, Any], metrics: dict[str, Any]) -> str:
    """What it is and how it ended first; then the last value of each metric."""
    rows = [
        ("Experiment", view["experiment"]),
        ("Id", view["run_id"]),
        ("Type", view["type"] or ""),
        ("Status", _status(view["status"])),
        ("Why", why(view)),
        ("Took", took(view)),
        ("Tags", ", ".join(key if value is None else f"{key}: {value}" for key, value in view["tags"].items())),
        ("Metrics", _metrics(metrics)),
        ("Folder", view["folder"]),
    ]
    cells = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in rows if value)
    return f'<table style="text-align:left">{cells}</table>'


def runs_html(title: str, runs: list[dict[str, Any]], more: bool) -> str:
    head = "".join(_cell("th", name) for name in ("Run", "Status", "Took", "Why"))
    rows = "".join(
        f"<tr>{_cell('td', run['run_id'])}{_cell('td', _status(run['status']))}{_cell('td', took(run))}"
        f"{_cell('td', why(run))}</tr>"
        for run in runs
    )
    note = "<p>and older ones: <code>experiment.to_dataframe()</code> has them all</p>" if more else ""
    shown = f'<table style="text-align:left"><tr>{head}</tr>{rows}</table>{note}' if runs else "<p>no runs yet</p>"
    return f"<p><strong>{_escaped(title)}</strong></p>{shown}"


def table_html(rows: dict[str, Any]) -> str:
    cells = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in rows.items())
    return f'<table style="text-align:left">{cells}</table>'


def run_text(view: dict[str, Any], metrics: dict[str, Any], log_tail: str) -> str:
    """The same for a terminal."""
    lines = [f"{view['experiment']} · {view['run_id']}", "  ".join(filter(None, (view["status"], took(view))))]
    if why(view):
        lines += [f"why: {why(view)}"]
    if metrics:
        lines += [f"metrics: {_metrics(metrics)}"]
    if log_tail:
        lines += ["log:", *(f"  {line}" for line in log_tail.splitlines()[-10:])]
    return "\n".join(lines) + "\n"


def why(view: dict[str, Any]) -> str:
    """Of a run that ended badly its own words, of one that has not ended what it waits for."""
    end = view["end"] or {}
    if view["status"] in ("Failed", "Canceled"):
        return str(end.get("message") or end.get("reason") or "")
    return "" if view["ended_at"] else str(view["activity"])


def took(view: dict[str, Any]) -> str:
    if not view["started_at"]:
        return ""
    return duration_text(max((view["ended_at"] or time.time()) - view["started_at"], 0.0))


def _metrics(metrics: dict[str, Any]) -> str:
    shown = [f"{name} {_value(value)}" for name, value in list(metrics.items())[:_METRICS_SHOWN]]
    more = len(metrics) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_value(item)}" for name, item in value.items()) + "}"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "…"


class _Status(str):
    """Shown in its colour."""


def _status(status: str) -> _Status:
    return _Status(status)


def _cell(tag: str, value: Any) -> str:
    text = _escaped(str(value))
    if isinstance(value, _Status):
        text = f'<span style="color:{_COLOURS.get(value, "inherit")};font-weight:600">{text}</span>'
    return f'<{tag} style="text-align:left">{text}</{tag}>'


def _escaped(text: str) -> str:
    from html import escape  # 1.4 ms, for notebooks alone

    return escape(text)
