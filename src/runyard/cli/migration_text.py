"""What migrating comes to, for people: the sum first, then what needs attention, by file."""

from __future__ import annotations

from collections.abc import Iterable

from runyard.cli.formatting import count_text
from runyard.migration.report import ATTENTION, NOTE, RULES, RUNS, UNREADABLE, FileReport, Finding, Report

_PLACES = 4
_NAMES = 12
_BY_NAMES = {"tensorflow-1"}  # one remedy for many names


def print_report(report: Report) -> None:
    counts = (
        (RUNS, "runs as it is", "run as they are"),
        (ATTENTION, "needs attention", "need attention"),
        (UNREADABLE, "is not Python", "are not Python"),
    )
    parts = [
        f"{len(report.of(v))} {one if len(report.of(v)) == 1 else many}" for v, one, many in counts if report.of(v)
    ]
    print(f"{count_text(len(report.files), 'file')}: {', '.join(parts)}")
    for file in report.files:
        if file.outcome != RUNS:
            _print_file(file)
    fine = report.of(RUNS)
    if fine:
        print("\nruns as it is:")
        for file in fine:
            names = f"   {count_text(len(file.sdk_names), 'name')} of the SDK" if file.sdk_names else ""
            print(f"  {file.path}{names}")
            _print_findings(file.findings)


def _print_file(file: FileReport) -> None:
    print(f"\n{file.path}")
    _print_findings(file.findings)


def _print_findings(findings: Iterable[Finding]) -> None:
    """Those with the same remedy are said once, with all their names and places."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        about = finding.rule if finding.rule in _BY_NAMES else finding.message
        groups.setdefault((about, finding.remedy, finding.severity), []).append(finding)
    for group in groups.values():
        first = group[0]
        message = _listed(group) if first.rule in _BY_NAMES and len({f.name for f in group}) > 1 else first.message
        mark = "note: " if first.severity == NOTE else ""
        print(f"  {_places(group)}  {mark}{message}  [{first.rule}]")
        if first.remedy:
            print(f"      -> {first.remedy}")


def _listed(group: list[Finding]) -> str:
    names = list(dict.fromkeys(finding.name for finding in group))
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{RULES[group[0].rule]}: {', '.join(names[:_NAMES])}{more}"


def _places(group: list[Finding]) -> str:
    """`line 3, 9`, `cell 12, line 3; cell 14, line 1, 2`."""
    cells: dict[int | None, list[int]] = {}
    for finding in group:
        lines = cells.setdefault(finding.cell, [])
        if finding.line not in lines:
            lines.append(finding.line)
    told = [(f"cell {cell}, " if cell else "") + f"line {_some(lines)}" for cell, lines in cells.items()]
    return "; ".join(told[:_PLACES]) + (f"; and {len(told) - _PLACES} more" if len(told) > _PLACES else "") + ":"


def _some(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:_PLACES]))
    return shown + (f" and {len(lines) - _PLACES} more" if len(lines) > _PLACES else "")
