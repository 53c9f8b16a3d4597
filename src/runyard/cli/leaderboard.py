"""Prints the children of a sweep, best first."""

from __future__ import annotations

import math
from typing import Any

from runyard.cli.formatting import value_text
from runyard.cli.table import print_table
from runyard.spec.sweep import STUDY_PROPERTY, child_label

_MAX_BEST, _MAX_UNSUCCESSFUL = 10, 5


def is_sweep(view: dict[str, Any]) -> bool:
    """True for a sweep of the yard, and for a run whose script runs an Optuna study."""
    return view["type"] == "hyperdrive" or STUDY_PROPERTY in view["properties"]


def print_leaderboard(sweep: dict[str, Any], *, show_all: bool = False) -> None:
    """Print all children, or the best ones and some that failed or were stopped, with the reasons."""
    sign = 1.0 if sweep["goal"] == "maximize" else -1.0
    children = sorted(
        sweep["children"], key=lambda child: -sign * child["best"] if child["best"] is not None else math.inf
    )
    visible = children if show_all else [*children[:_MAX_BEST], *_unsuccessful(children[_MAX_BEST:])]
    names = list(dict.fromkeys(name for child in children for name in child["parameters"]))
    resumed = ["RESUMED FROM"] if any(child["resumes"] for child in children) else []
    head = ["CHILD", "STATUS", sweep["primary_metric"], *names, *resumed, ""]
    rows = [
        [
            str(child["number"]),
            child["status"],
            "" if child["best"] is None else value_text(child["best"]),
            *(value_text(child["parameters"].get(name, "")) for name in names),
            *(child_label(sweep["sweep_id"], child["resumes"]) for _ in resumed),
            child["stopped"] or child["error"],
        ]
        for child in visible
    ]
    if rows:
        print_table(head, rows, right=["CHILD", sweep["primary_metric"]])
    hidden = len(children) - len(visible)
    if hidden:
        print(f"and {hidden:,} more: runyard show {sweep['sweep_id']} --all")


def _unsuccessful(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Failed children first; stopped ones behaved as intended."""
    unsuccessful = [child for child in children if child["error"] or child["stopped"]]
    return sorted(unsuccessful, key=lambda child: (not child["error"], child["number"]))[:_MAX_UNSUCCESSFUL]


def missing_metric_error(sweep: dict[str, Any]) -> str:
    """The error of a completed sweep without a best child; empty if it has one."""
    if sweep["status"] != "Completed" or sweep["best"] is not None:
        return ""
    return (
        f"no child of {sweep['sweep_id']} logged a number as the primary metric {sweep['primary_metric']!r}, "
        "so there is no best child"
    )
