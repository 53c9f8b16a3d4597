"""The `runyard restore` command."""

from __future__ import annotations

import time
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.commands.yard import yard_health
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.cli.maintenance import run_maintenance
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app()
_MAX_LISTED = 20


@app.command(cls=Command)
def restore(
    backup: Annotated[
        Optional[str], typer.Argument(metavar="[BACKUP]", help="Name or path of a backup. Default: the newest.")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="List the backups and do nothing else.")] = False,
    empty: Annotated[
        bool, typer.Option("--empty", help="Use no backup: create a new database from the runs' folders.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Restore the yard's database from a backup.

    The current database is moved aside, never deleted. Runs that are newer than the backup are added again from their
    folders. The yard must not be running; runs may be.
    """
    connection = Connection()
    home = connection.home
    if empty and backup is not None:
        raise UserErrorException("--empty uses no backup", hint="give either a backup or --empty")
    backups = run_maintenance(home, ["backups"])
    if list_only:
        _print_backups(backups, as_json)
        return
    health = yard_health(connection)
    if health is not None:
        raise UserErrorException(
            f"the yard of {home} is running (process {health['pid']})",
            hint="stop it first with `runyard yard stop`; runs continue",
        )
    question = f"replace the database of {home} by {_source(backups, backup, empty)}?"
    confirm(yes, "restoring the database", question)
    arguments = ["restore", *(["--empty"] if empty else []), *(["--", backup] if backup else [])]
    report = run_maintenance(home, arguments)
    if as_json:
        print_json(report)
    else:
        _print_report(report)


def _source(backups: list[dict[str, Any]], name: Optional[str], empty: bool) -> str:
    if empty:
        return "a new one"
    if name is not None:
        return f"the backup {name}"
    intact = [backup for backup in backups if not backup["problem"]]
    return f"the backup of {_time(intact[0])} with {count_text(intact[0]['runs'], 'run')}" if intact else "a backup"


def _print_backups(backups: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(backups)
    elif not backups:
        print_status("no backups; the yard makes one every day once it has runs")
    else:
        now = clock.now()
        rows = [
            (
                backup["name"],
                _time(backup),
                age_text(now - backup["created_at"]),
                f"{backup['runs']:,}",
                size_text(backup["size"]),
                backup["problem"] or "ok",
            )
            for backup in backups
        ]
        print_table(("BACKUP", "TIME", "AGE", "RUNS", "SIZE", "STATE"), rows, right=("AGE", "RUNS", "SIZE"))


def _print_report(report: dict[str, Any]) -> None:
    for backup in report["skipped"]:
        print_status(f"warning: the backup {backup['name']} is damaged and was not used: {backup['problem']}")
    backup = report["backup"]
    if backup is None:
        print("created a new database")
    else:
        print(f"restored the backup of {_time(backup)} with {count_text(backup['runs'], 'run')}")
    for path in report["moved"]:
        print(f"the replaced file is {path}")
    _print_runs("added from their folders", report["added"])
    _print_runs("completed from their folders", report["updated"])
    if report["not_added"]:
        print(f"{count_text(len(report['not_added']), 'run')} could not be added; their folders are unchanged:")
        for run_id, reason in report["not_added"][:_MAX_LISTED]:
            print(f"  {run_id}: {reason}")
        _print_rest(report["not_added"])


def _print_runs(action: str, run_ids: list[str]) -> None:
    if run_ids:
        print(f"{count_text(len(run_ids), 'run')} {action}:")
        for run_id in run_ids[:_MAX_LISTED]:
            print(f"  {run_id}")
        _print_rest(run_ids)


def _print_rest(items: list[Any]) -> None:
    if len(items) > _MAX_LISTED:
        print(f"  and {len(items) - _MAX_LISTED:,} more; --json lists all")


def _time(backup: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(backup["created_at"]))
