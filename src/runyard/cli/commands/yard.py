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

app = new_app(no_args_is_help=True)
_PATIENCE_S = 30.0


@app.callback()
def yard() -> None:
    """Look at the yard's background process, or stop it."""


@app.command(cls=Command)
def status(as_json: Json = False) -> None:
    """Say whether the yard of this home folder runs. It is not started for that."""
    connection = Connection()
    health = alive(connection)
    if as_json:
        print_json({"home": str(connection.home), "running": health is not None, **(health or {})})
    elif health is None:
        print(f"the yard of {connection.home} is not running; the first command that needs it starts it")
    else:
        print(
            f"the yard of {connection.home} runs: version {health['version']}, process {health['pid']}, "
            f"{count_text(health['live_runs'], 'live run')}"
        )


@app.command(cls=Command)
def stop() -> None:
    """Stop the yard's process. Runs go on; the next command starts it again and it takes them up."""
    connection = Connection()
    health = alive(connection)
    if health is None:
        print_status(f"the yard of {connection.home} is not running")
        return
    os.kill(health["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE_S
    while _lives(health["pid"]):
        if time.monotonic() > deadline:
            raise RunyardException(
                f"the yard (process {health['pid']}) has not ended within {_PATIENCE_S:.0f} s",
                hint=f"kill -9 {health['pid']} ends it; nothing is lost, and runs go on",
            )
        time.sleep(0.02)
    going_on = f"; {count_text(health['live_runs'], 'run')} going on" if health["live_runs"] else ""
    print_status(f"the yard of {connection.home} has stopped{going_on}")


def alive(connection: Connection) -> Optional[dict[str, Any]]:
    """What the yard says of itself; None when there is none. It is not started for that."""
    if not connection.is_running():
        return None
    found: dict[str, Any] = connection.get("/api/health")
    return found


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"  # one that nobody has waited for yet
    except OSError:
        return False
