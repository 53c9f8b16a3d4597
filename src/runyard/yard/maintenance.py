"""Entry point of maintenance that needs no running yard: `fsck`, `backups`, `restore`.

The command line starts it as a process, because it never imports the engine. One JSON object per line is written to
stdout: {"progress": …} any number of times, then {"result": …} or {"error": …}.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from typing import Any

from runyard.client.home import home_folder
from runyard.errors import RunyardException
from runyard.spec.json import to_json


def main() -> int:
    parser = argparse.ArgumentParser(prog="runyard.yard.maintenance")
    parser.add_argument("--home", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fsck").add_argument("--quick", action="store_true")
    commands.add_parser("backups")
    restoring = commands.add_parser("restore")
    restoring.add_argument("name", nargs="?")
    restoring.add_argument("--empty", action="store_true")
    options = parser.parse_args()
    os.umask(0o077)  # everything in the home folder is private to the owner
    try:
        _write({"result": _run(options)})
    except RunyardException as error:
        _write({"error": {"code": type(error).__name__, "message": error.message, "hint": error.hint}})
        return 1
    except (OSError, sqlite3.Error) as error:
        _write({"error": {"code": "RunyardException", "message": str(error), "hint": "check the disk"}})
        return 1
    return 0


def _run(options: argparse.Namespace) -> Any:
    home = home_folder(options.home)
    if options.command == "fsck":
        from runyard.yard.fsck.check import check_home

        report = check_home(home, quick=options.quick, on_progress=lambda area: _write({"progress": to_json(area)}))
        return {"findings": to_json(report.findings), "checked": to_json(report.areas)}
    from runyard.yard.restore import describe_backups, restore

    if options.command == "backups":
        return to_json(describe_backups(home))
    return to_json(restore(home, options.name, empty=options.empty))


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
