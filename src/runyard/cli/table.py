"""Plain text tables, readable without color and by awk. Lines are cut to the width of the terminal, if any."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    cells = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    max_width = _terminal_width()
    for row in (list(head), *cells):
        padded = [
            cell.rjust(width) if name in right else cell.ljust(width) for name, cell, width in zip(head, row, widths)
        ]
        line = "  ".join(padded).rstrip()
        print(line if max_width is None or len(line) <= max_width else line[: max_width - 1] + "…")


def _terminal_width() -> int | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    except OSError:
        return None
