"""The `runyard yard` command."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Optional

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text
from runyard.cli.run_lookup import Json, print_json
from runyard.client.connection import Connection
from runyard.errors import RunyardException
from runyard.posix import procfs

app = new_app(no_args_is_help=True)
_STOP_TIMEOUT_S = 30.0


@app.callback()
def yard() -> None:
    """Show or stop the yard, the background server."""


@app.command(cls=Command)
def status(as_json: Json = False) -> None:
    """Show whether the yard is running, without starting it."""
    connection = Connection()
    health = yard_health(connection)
    if as_json:
        print_json({"home": str(connection.home), "running": health is not None, **(health or {})})
    elif health is None:
        print(f"the yard of {connection.home} is not running; it starts when a command needs it")
    else:
        print(
            f"the yard of {connection.home} is running: version {health['version']}, process {health['pid']}, "
            f"{count_text(health['live_runs'], 'live run')}"
        )


@app.command(cls=Command)
def stop() -> None:
    """Stop the yard. Runs continue; the next command starts the yard again."""
    connection = Connection()
    health = yard_health(connection)
    if health is None:
        print_status(f"the yard of {connection.home} is not running")
        return
    os.kill(health["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while procfs.start_ticks(health["pid"]) is not None:
        if time.monotonic() > deadline:
            raise RunyardException(
                f"the yard (process {health['pid']}) did not stop within {_STOP_TIMEOUT_S:.0f} s",
                hint=f"end it with kill -9 {health['pid']}; nothing is lost, and runs continue",
            )
        time.sleep(0.02)
    remaining = f"; {count_text(health['live_runs'], 'run')} still running" if health["live_runs"] else ""
    print_status(f"the yard of {connection.home} has stopped{remaining}")


def yard_health(connection: Connection) -> Optional[dict[str, Any]]:
    """The yard's health report; None if it is not running. Does not start it."""
    if not connection.is_running():
        return None
    health: dict[str, Any] = connection.get("/api/health")
    return health
