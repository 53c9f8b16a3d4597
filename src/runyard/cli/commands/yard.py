"""The `runyard yard` command."""

from __future__ import annotations

import pwd
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import count_text
from runyard.cli.run_lookup import Json, print_json
from runyard.client import systemd_unit
from runyard.client.connection import Connection
from runyard.client.home import home_folder, prepare_home
from runyard.client.yard_process import find_yard, stop_yard
from runyard.errors import UserErrorException, YardUnavailable

app = new_app(no_args_is_help=True)


@app.callback()
def yard() -> None:
    """Show, stop or install the yard, the background server."""


@app.command(cls=Command)
def status(as_json: Json = False) -> None:
    """Show whether the yard is running, without starting it."""
    connection = Connection()
    health = yard_health(connection)
    pid = health["pid"] if health is not None else find_yard(connection.home)
    if as_json:
        process = {} if pid is None else {"pid": pid}
        print_json({"home": str(connection.home), "running": pid is not None, **process, **(health or {})})
    elif pid is None:
        print(f"the yard of {connection.home} is not running; it starts when a command needs it")
    elif health is None:
        print(f"the yard of {connection.home} is running as process {pid}, but does not accept connections yet")
    else:
        print(
            f"the yard of {connection.home} is running: version {health['version']}, process {health['pid']}, "
            f"{count_text(health['live_runs'], 'live run')}"
        )


@app.command(cls=Command)
def stop() -> None:
    """Stop the yard. Runs continue; the next command starts the yard again."""
    connection = Connection()
    try:
        health = yard_health(connection)
    except YardUnavailable:  # it does not respond, or ends by itself
        health = None
    if stop_yard(connection.home) is None:
        print_status(f"the yard of {connection.home} is not running")
        return
    live_runs = health["live_runs"] if health is not None else 0
    remaining = f"; {count_text(live_runs, 'run')} still running" if live_runs else ""
    print_status(f"the yard of {connection.home} has stopped{remaining}")


@app.command(cls=Command, name="install-unit")
def install_unit(
    system: Annotated[bool, typer.Option("--system", help="A unit of the system instead of your own systemd.")] = False,
    listen: Annotated[
        Optional[str],
        typer.Option(metavar="ADDRESS:PORT", help="Serve the studio and the API on TCP, as `runyard server` does."),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the unit and write nothing.")] = False,
) -> None:
    """Write a systemd unit that keeps the yard running, also after a reboot.

    Services start with the yard. A unit of your own systemd needs no other rights, and runs while you are logged in, or
    always after `loginctl enable-linger`.
    """
    home = prepare_home(home_folder())
    user = pwd.getpwuid(home.stat().st_uid).pw_name if system else None
    text = systemd_unit.unit_text(home, user=user, listen=_address(listen) if listen is not None else None)
    if show:
        print(text, end="")
        return
    folder = systemd_unit.SYSTEM_FOLDER if system else systemd_unit.user_folder()
    path = folder / systemd_unit.unit_name(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserErrorException(
            f"cannot write {path}: {error.strerror}",
            hint="units of the system belong to root: use sudo, or omit --system" if system else "see --print",
        ) from error
    manager = "systemctl" if system else "systemctl --user"
    print(path)
    print_status(f"start it now and after every reboot: {manager} daemon-reload && {manager} enable --now {path.name}")
    if not system:
        print_status("let it run while you are not logged in: loginctl enable-linger")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UserErrorException(f"--listen must be ADDRESS:PORT, got {text!r}", hint="for example 127.0.0.1:8787")
    return host.strip("[]"), int(port)


def yard_health(connection: Connection) -> Optional[dict[str, Any]]:
    """The yard's health report; None if it is not running. Does not start it."""
    if not connection.is_running():
        return None
    health: dict[str, Any] = connection.get("/api/health")
    return health
