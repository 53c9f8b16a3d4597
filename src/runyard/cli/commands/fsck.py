"""The `runyard fsck` command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text, size_text
from runyard.cli.maintenance import run_maintenance
from runyard.cli.run_lookup import Json, print_json
from runyard.cli.table import print_table
from runyard.client.home import home_folder

app = new_app()


@app.command(cls=Command)
def fsck(
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare names, sizes and records only; do not read contents.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check everything that the yard stores, and report damage.

    Checks the database and its backups, the stored files of runs and models, snapshots, environments and the data
    cache. Nothing is changed. The yard may be running. The exit code is 1 if something is damaged.
    """
    home = home_folder()
    with _progress() as show:
        result = run_maintenance(home, ["fsck", *(["--quick"] if quick else [])], show)
    findings = result["findings"]
    damage = [finding for finding in findings if finding["level"] == "damage"]
    if as_json:
        print_json({"home": str(home), **result})
        return 1 if damage else 0
    rows = [(area["name"], f"{area['items']:,}", size_text(area["bytes"])) for area in result["checked"]]
    print_table(("CHECKED", "ITEMS", "SIZE"), rows, right=("ITEMS", "SIZE"))
    for finding in findings:
        mark = "!!" if finding["level"] == "damage" else "--"
        print(f"\n{mark}  {finding['area']}: {finding['subject']}: {finding['problem']}\n    -> {finding['remedy']}")
    print()
    print(f"{count_text(len(damage), 'problem')} in {home}" if damage else f"no damage in {home}")
    return 1 if damage else 0


@contextmanager
def _progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show the area that is being checked: in one line on a terminal, else one line per area."""
    is_terminal = sys.stderr.isatty()
    last_area = ""

    def show(area: dict[str, Any]) -> None:
        nonlocal last_area
        if is_terminal:
            text = f"checking {area['name']}: {count_text(area['items'], 'item')}, {size_text(area['bytes'])}"
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif area["name"] != last_area:
            print_status(f"checking {area['name']}")
        last_area = area["name"]

    try:
        yield show
    finally:
        if is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
