"""The children of a sweep, the best first."""

from __future__ import annotations

import math
from typing import Any

from runyard.cli.formatting import count_text, value_text
from runyard.cli.table import print_table
from runyard.spec.sweep import child_label

_BEST, _WITH_REASONS = 10, 5


def print_leaderboard(sweep: dict[str, Any], *, whole: bool = False) -> None:
    """Of many children the best, and some of those that failed or were stopped: why stands nowhere else together."""
    sign = 1.0 if sweep["goal"] == "maximize" else -1.0
    children = sorted(
        sweep["children"], key=lambda child: -sign * child["best"] if child["best"] is not None else math.inf
    )
    shown = children if whole else [*children[:_BEST], *_with_reasons(children[_BEST:])]
    names = list(dict.fromkeys(name for child in children for name in child["parameters"]))
    goes_on = ["GOES ON FROM"] if any(child["resumes"] for child in children) else []
    head = ["CHILD", "STATUS", sweep["primary_metric"], *names, *goes_on, ""]
    rows = [
        [
            str(child["number"]),
            child["status"],
            "" if child["best"] is None else value_text(child["best"]),
            *(value_text(child["parameters"].get(name, "")) for name in names),
            *(child_label(sweep["sweep_id"], child["resumes"]) for _ in goes_on),
            child["stopped"] or child["error"],
        ]
        for child in shown
    ]
    if rows:
        print_table(head, rows, right=["CHILD", sweep["primary_metric"]])
    left = len(children) - len(shown)
    if left:
        more = count_text(left, "more child").replace("childs", "children")
        print(f"and {more}: runyard show {sweep['sweep_id']} --all")


def _with_reasons(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Failed ones first: what was stopped did as it should."""
    found = [child for child in children if child["error"] or child["stopped"]]
    return sorted(found, key=lambda child: (not child["error"], child["number"]))[:_WITH_REASONS]


def nothing_to_compare(sweep: dict[str, Any]) -> str:
    """What is wrong with a sweep that came through and has no best child; nothing when it has one."""
    if sweep["status"] != "Completed" or sweep["best"] is not None:
        return ""
    return (
        f"no child of {sweep['sweep_id']} logged a number as its primary metric {sweep['primary_metric']!r}, "
        f"so none is the best"
    )
