"""Prints rows as a table, and writes them to the documentation between two markers."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.row import Row, format_amount, format_spread

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "speed.md"
MEASURED = Path(__file__).with_name("measured.json")
_BEGIN, _END = "<!-- bench: begin -->", "<!-- bench: end -->"
_HEADINGS = ("measurement", "Runyard", "quartiles", "baseline", "ratio", "goal", "result")


def print_row(row: Row) -> None:
    """Print a row immediately after its measurement."""
    ours, spread, baseline, ratio, goal, verdict = _cells(row)
    print(f"{row.title}")
    line = f"    {ours}" + (f"  ({spread})" if spread else "")
    line += f"   baseline: {baseline}" if baseline else ""
    line += f"   ratio {ratio}" if ratio else ""
    line += f"   goal {goal}: {verdict}" if goal else ""
    print(line)
    for text in (*_peer_texts(row), *row.notes):
        print(f"      {text}")


def print_table(rows: Sequence[Row]) -> None:
    table = [_HEADINGS, *((row.title, *_cells(row)) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADINGS))]
    total_width = sum(widths) + 2 * len(widths)
    if total_width > shutil.get_terminal_size((160, 24)).columns:
        widths[0] = max(len(row.title) for row in rows)
    print()
    for number, line in enumerate(table):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    verdicts = [row.verdict for row in rows if row.verdict]
    unclear = verdicts.count("inconclusive")
    print(f"\n{verdicts.count('met')} of {len(verdicts)} goals met" + (f", {unclear} inconclusive" if unclear else ""))


def write_page(measured: Mapping[str, Sequence[Row]], names: Iterable[str]) -> None:
    """Update the table in the documentation; the text around it is not changed.

    Rows that were not measured now keep their earlier values and dates. Names that were never measured are listed.
    """
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, has_end, after = rest.partition(_END)
    if not has_end:
        raise SystemExit(f"error: {PAGE} has no {_BEGIN} … {_END}")
    stored = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    for name, rows in measured.items():
        stored[name] = [f"{_line(row)} {time.strftime('%Y-%m-%d')} |" for row in rows]
    stored = {name: stored[name] for name in names if name in stored}
    MEASURED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    table = _markdown(stored, [name for name in names if name not in stored])
    PAGE.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", encoding="utf-8")


def _markdown(stored: Mapping[str, Sequence[str]], missing: Sequence[str]) -> str:
    lines = [
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}. "
        "Medians, with the interquartile range in parentheses.",
        "",
        "| measurement | Runyard | baseline | ratio | goal | result | peers and notes | measured on |",
        "|---|---|---|---|---|---|---|---|",
        *(line for lines in stored.values() for line in lines),
    ]
    if missing:
        lines += [
            "",
            f"Not measured yet: {', '.join(f'`{name}`' for name in missing)} (`python -m bench NAME`).",
        ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    ours, spread, baseline, ratio, goal, verdict = _cells(row)
    measured = f"{ours} ({spread})" if spread else ours
    notes = "; ".join((*_peer_texts(row), *row.notes))
    return f"| {row.title} | {measured} | {baseline} | {ratio} | {goal} | {verdict} | {notes} |"


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    if row.ours is None:
        return "not measured", "", "", "", "", ""
    baseline = f"{row.baseline[0]}: {format_amount(row.baseline[1], row.unit)}" if row.baseline else ""
    return (
        format_amount(row.ours, row.unit),
        format_spread(row.ours, row.unit),
        baseline,
        f"{row.ratio:.3g}x" if row.ratio is not None else "",
        row.goal.text(row.unit) if row.goal else "",
        row.verdict,
    )


def _peer_texts(row: Row) -> list[str]:
    return [f"{name}: {format_amount(number, row.unit)}" for name, number in row.peers.items()]
