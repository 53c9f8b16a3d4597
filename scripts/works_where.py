"""The table of what works where, from the capabilities of the targets. `python scripts/works_where.py` writes it."""

from __future__ import annotations

from pathlib import Path

from runyard.compute.registry import KINDS
from runyard.spec.launch import KINDS as LAUNCHES

README = Path(__file__).parent.parent / "README.md"
COLUMNS = {
    "single": "one process",
    "mpi": "Open MPI / Horovod",
    "parameter-server": "TF parameter servers",
    "torch": "torch DDP",
}
NOT_YET = ("Kubernetes",)


def rows() -> dict[str, tuple[str, ...]]:
    """Target -> the ways of launching that work there. Kinds that are one thing by two names have one row."""
    found = {"local": tuple(LAUNCHES)}
    ordered = sorted(KINDS.values(), key=lambda kind: (not kind.resizable, kind.title))
    found.update((kind.title, kind.launches) for kind in ordered)
    found.update((name, ()) for name in NOT_YET)
    return found


def table() -> str:
    lines = [f"| | {' | '.join(COLUMNS.values())} |", "|---|" + ":---:|" * len(COLUMNS)]
    for name, launches in rows().items():
        ticks = " | ".join("✓" if column in launches else " " for column in COLUMNS)
        lines.append(f"| {name} | {ticks} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with its table replaced: the lines that begin with a bar, under the heading."""
    head, heading, rest = page.partition("## What works today\n\n")
    kept = rest.splitlines(keepends=True)
    while kept and kept[0].startswith("|"):
        del kept[0]
    return head + heading + table() + "".join(kept)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
