"""The `runyard studio` command."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.run_lookup import Json, print_json
from runyard.client.connection import Connection

app = new_app()


@app.command(cls=Command)
def studio(
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address instead of opening a browser.")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port (default: the last one, or from 8787).")
    ] = 0,
    close: Annotated[bool, typer.Option("--close", help="Stop listening on the network.")] = False,
    as_json: Json = False,
) -> None:
    """Open the studio, the web UI, in a browser.

    The yard listens on 127.0.0.1. The printed address contains the yard's token: keep it secret. From another
    machine, forward the port with SSH.
    """
    connection = Connection()
    if close:
        connection.delete("/api/studio")
        print_status("the yard no longer listens on the network")
        return
    address = connection.post("/api/studio", {"port": port})
    if as_json:
        print_json(address)
        return
    if not no_open and _open(f"{address['url']}?token={address['ticket']}"):
        print_status(f"studio: {address['url']}")
        return
    print(f"{address['url']}?token={address['token']}")


def _open(url: str) -> bool:
    """Open a browser. Other users can see its arguments, so the address contains a one-time ticket, not the token."""
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
