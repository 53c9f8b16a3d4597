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
from runyard.cli.commands.yard import alive, stop
from runyard.cli.follow import print_status
from runyard.client.connection import Connection
from runyard.client.home import prepare_home
from runyard.errors import UserErrorException
from runyard.launch.variables import ROLE

app = new_app()
_LOOK_S = 0.05


@app.command(cls=Command)
def server(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Of this machine; 0.0.0.0 is all of them.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes a free one.")] = 8787,
    name: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME", help="A host name by which it is reached; repeatable.")
    ] = None,
) -> int:
    """Serve the studio and the API on TCP, for a team.

    In the foreground, until Ctrl-C. It is the yard of the home folder: one that runs in the background gives way, and
    runs go on. Everybody who has the token may do everything. The connection is not encrypted: put a proxy with TLS
    before it, or forward by ssh.
    """
    connection = Connection()
    prepare_home(connection.home)
    health = alive(connection)
    if health is not None:
        if health.get("stays"):
            raise UserErrorException(
                f"process {health['pid']} serves the yard of {connection.home} already",
                hint=f"it is at {health['studio']}; end that process first",
            )
        stop()
    listen = json.dumps({"host": host, "port": port, "names": name or []})
    command = [sys.executable, "-m", "runyard.yard", "--home", str(connection.home), "--listen", listen]
    yard = subprocess.Popen(command, env={**os.environ, ROLE: "yard"})
    signal.signal(signal.SIGTERM, lambda *_: yard.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the yard, too, which ends in order
    while yard.poll() is None and not connection.is_running():
        time.sleep(_LOOK_S)
    if yard.poll() is None:
        with suppress(OSError):
            address = connection.get("/api/studio")
            print_status(f"the studio is at {address['url']}?token={address['token']}")
            print_status("everybody with this address can use the yard; Ctrl-C ends it, runs go on")
    return yard.wait()
