"""Scripts and notebooks as people have them, and what reading them comes to."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from runyard.migration.report import FileReport
from runyard.migration.scan import examine


def script(folder: Path, text: str, name: str = "train.py") -> FileReport:
    path = folder / name
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    (report,) = examine(path).files
    return report


def notebook(folder: Path, *cells: str, name: str = "train.ipynb") -> FileReport:
    """Each text a cell of code; one that begins with `#` and a space before a capital is text for people."""
    made = [
        {"cell_type": "markdown" if cell.startswith("# A") else "code", "source": dedent(cell).lstrip("\n")}
        for cell in cells
    ]
    path = folder / name
    path.write_text(json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}), encoding="utf-8")
    (report,) = examine(path).files
    return report


def told(report: FileReport) -> list[tuple[str, str, int]]:
    return [(finding.rule, finding.name, finding.line) for finding in report.findings]
