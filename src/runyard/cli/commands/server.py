"""The `runyard server` command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Annotated, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.commands.yard import stop, yard_health
from runyard.cli.follow import print_status
from runyard.client.connection import Connection
from runyard.client.home import prepare_home
from runyard.client.yard_process import find_yard
from runyard.errors import UserErrorException
from runyard.launch.variables import ROLE

app = new_app()
_POLL_S = 0.05


@app.command(cls=Command)
def server(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 for a free one.")] = 8787,
    name: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME", help="Host name that clients use. Repeatable.")
    ] = None,
) -> int:
    """Serve the studio and the API on TCP, for a team.

    Runs in the foreground until Ctrl-C and replaces a background yard of the same home folder; runs continue. Everyone
    with the token has full access. The connection is not encrypted: use a TLS proxy or SSH port forwarding.
    """
    connection = Connection()
    prepare_home(connection.home)
    health = yard_health(connection)
    if health is not None and health.get("stays"):
        raise UserErrorException(
            f"process {health['pid']} already serves the yard of {connection.home}",
            hint=f"it is available at {health['studio']}; stop that process first",
        )
    if health is not None or find_yard(connection.home) is not None:
        stop()
    listen = json.dumps({"host": host, "port": port, "names": name or []})
    command = [sys.executable, "-m", "runyard.yard", "--home", str(connection.home), "--listen", listen]
    yard = subprocess.Popen(command, env={**os.environ, ROLE: "yard"})
    signal.signal(signal.SIGTERM, lambda *_: yard.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal also sends it to the yard, which shuts down cleanly
    while yard.poll() is None and not connection.is_running():
        time.sleep(_POLL_S)
    if yard.poll() is None:
        with suppress(OSError):
            address = connection.get("/api/studio")
            print_status(f"studio: {address['url']}?token={address['token']}")
            print_status("everyone with this address can use the yard; press Ctrl-C to stop it, runs continue")
    return yard.wait()
