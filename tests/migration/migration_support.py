"""Helpers that write scripts and notebooks and scan them."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from runyard.migration.report import FileReport
from runyard.migration.scan import scan


def script(folder: Path, text: str, name: str = "train.py") -> FileReport:
    path = folder / name
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    (report,) = scan(path).files
    return report


def notebook(folder: Path, *cells: str, name: str = "train.ipynb") -> FileReport:
    """Write a notebook of code cells; a text that starts with `# A` becomes a markdown cell."""
    content = [
        {"cell_type": "markdown" if cell.startswith("# A") else "code", "source": dedent(cell).lstrip("\n")}
        for cell in cells
    ]
    path = folder / name
    path.write_text(
        json.dumps({"cells": content, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}), encoding="utf-8"
    )
    (report,) = scan(path).files
    return report


def summary(report: FileReport) -> list[tuple[str, str, int]]:
    return [(finding.rule, finding.name, finding.line) for finding in report.findings]
