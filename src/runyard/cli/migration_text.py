"""Prints a migration report: the totals, then what needs attention, by file."""

from __future__ import annotations

from collections.abc import Iterable

from runyard.cli.formatting import count_text
from runyard.migration.report import ATTENTION, NOTE, RULES, RUNS, UNREADABLE, FileReport, Finding, Report

_MAX_PLACES = 4
_MAX_NAMES = 12
_BY_NAMES = {"tensorflow-1"}  # one remedy for many names


def print_report(report: Report) -> None:
    counts = (
        (RUNS, "runs unchanged", "run unchanged"),
        (ATTENTION, "needs attention", "need attention"),
        (UNREADABLE, "is not Python", "are not Python"),
    )
    parts = [
        f"{len(report.with_verdict(v))} {singular if len(report.with_verdict(v)) == 1 else plural}"
        for v, singular, plural in counts
        if report.with_verdict(v)
    ]
    print(f"{count_text(len(report.files), 'file')}: {', '.join(parts)}")
    for file in report.files:
        if file.verdict != RUNS:
            _print_file(file)
    unchanged = report.with_verdict(RUNS)
    if unchanged:
        print("\nruns unchanged:")
        for file in unchanged:
            names = f"   {count_text(len(file.sdk_names), 'name')} of the SDK" if file.sdk_names else ""
            print(f"  {file.path}{names}")
            _print_findings(file.findings)


def _print_file(file: FileReport) -> None:
    print(f"\n{file.path}")
    _print_findings(file.findings)


def _print_findings(findings: Iterable[Finding]) -> None:
    """Findings with the same remedy are printed once, with all names and locations."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        subject = finding.rule if finding.rule in _BY_NAMES else finding.message
        groups.setdefault((subject, finding.remedy, finding.severity), []).append(finding)
    for group in groups.values():
        first = group[0]
        message = _list_names(group) if first.rule in _BY_NAMES and len({f.name for f in group}) > 1 else first.message
        mark = "note: " if first.severity == NOTE else ""
        print(f"  {_locations(group)}  {mark}{message}  [{first.rule}]")
        if first.remedy:
            print(f"      -> {first.remedy}")


def _list_names(group: list[Finding]) -> str:
    names = list(dict.fromkeys(finding.name for finding in group))
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{RULES[group[0].rule]}: {', '.join(names[:_MAX_NAMES])}{more}"


def _locations(group: list[Finding]) -> str:
    """`line 3, 9`, `cell 12, line 3; cell 14, line 1, 2`."""
    cells: dict[int | None, list[int]] = {}
    for finding in group:
        lines = cells.setdefault(finding.cell, [])
        if finding.line not in lines:
            lines.append(finding.line)
    locations = [(f"cell {cell}, " if cell else "") + f"line {_shorten(lines)}" for cell, lines in cells.items()]
    return (
        "; ".join(locations[:_MAX_PLACES])
        + (f"; and {len(locations) - _MAX_PLACES} more" if len(locations) > _MAX_PLACES else "")
        + ":"
    )


def _shorten(lines: list[int]) -> str:
    text = ", ".join(map(str, lines[:_MAX_PLACES]))
    return text + (f" and {len(lines) - _MAX_PLACES} more" if len(lines) > _MAX_PLACES else "")
