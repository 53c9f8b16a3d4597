"""Rows as a table: plain on the screen, and in the documentation between two markers."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.row import Row, amount, noise

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "speed.md"
MEASURED = Path(__file__).with_name("measured.json")
_BEGIN, _END = "<!-- bench: begin -->", "<!-- bench: end -->"
_HEADINGS = ("what", "ours", "half of the rounds", "beside it", "ratio", "goal", "")


def print_row(row: Row) -> None:
    """One row as soon as it is known."""
    ours, spread, beside, ratio, goal, verdict = _cells(row)
    print(f"{row.what}")
    line = f"    {ours}" + (f"  ({spread})" if spread else "")
    line += f"   beside it: {beside}" if beside else ""
    line += f"   ratio {ratio}" if ratio else ""
    line += f"   goal {goal}: {verdict}" if goal else ""
    print(line)
    for text in (*_peer_texts(row), *row.notes):
        print(f"      {text}")


def print_table(rows: Sequence[Row]) -> None:
    table = [_HEADINGS, *((row.what, *_cells(row)) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADINGS))]
    whole = sum(widths) + 2 * len(widths)
    if whole > shutil.get_terminal_size((160, 24)).columns:
        widths[0] = max(len(row.what) for row in rows)
    print()
    for number, line in enumerate(table):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    verdicts = [row.verdict for row in rows if row.verdict]
    unclear = verdicts.count("too noisy to say")
    print(
        f"\n{verdicts.count('met')} of {len(verdicts)} goals met" + (f", {unclear} too noisy to say" if unclear else "")
    )


def write_page(measured: Mapping[str, Sequence[Row]], names: Iterable[str]) -> None:
    """The table of the documentation; what people wrote around it stays.

    The whole bench takes longer than most have the machine to themselves: lines that were not measured now stay as
    they were, with their day, and a name that never was is told.
    """
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise SystemExit(f"error: {PAGE} has no {_BEGIN} … {_END}")
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    for name, rows in measured.items():
        known[name] = [f"{_line(row)} {time.strftime('%Y-%m-%d')} |" for row in rows]
    known = {name: known[name] for name in names if name in known}
    MEASURED.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    table = _markdown(known, [name for name in names if name not in known])
    PAGE.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", encoding="utf-8")


def _markdown(known: Mapping[str, Sequence[str]], never: Sequence[str]) -> str:
    lines = [
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}. "
        "Medians; in brackets where half of the rounds lay.",
        "",
        "| what | ours | beside it | ratio | goal | | peers, same run | measured on |",
        "|---|---|---|---|---|---|---|---|",
        *(line for lines in known.values() for line in lines),
    ]
    if never:
        lines += ["", f"Not measured yet: {', '.join(f'`{name}`' for name in never)} (`python -m bench NAME`)."]
    return "\n".join(lines)


def _line(row: Row) -> str:
    ours, spread, beside, ratio, goal, verdict = _cells(row)
    measured = f"{ours} ({spread})" if spread else ours
    others = "; ".join((*_peer_texts(row), *row.notes))
    return f"| {row.what} | {measured} | {beside} | {ratio} | {goal} | {verdict} | {others} |"


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    if row.ours is None:
        return "not measured", "", "", "", "", ""
    beside = f"{row.beside[0]}: {amount(row.beside[1], row.unit)}" if row.beside else ""
    return (
        amount(row.ours, row.unit),
        noise(row.ours, row.unit),
        beside,
        f"{row.ratio:.3g}x" if row.ratio is not None else "",
        row.goal.text(row.unit) if row.goal else "",
        row.verdict,
    )


def _peer_texts(row: Row) -> list[str]:
    return [f"{name}: {amount(number, row.unit)}" for name, number in row.peers.items()]
