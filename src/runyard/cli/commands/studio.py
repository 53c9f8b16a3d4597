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
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Listen there; else where it did last, or from 8787.")
    ] = 0,
    close: Annotated[bool, typer.Option("--close", help="Do not listen on the network any more.")] = False,
    as_json: Json = False,
) -> None:
    """Open the studio: every run, live, in a browser.

    The yard then listens on 127.0.0.1. The address that is printed has the yard's token in it and signs a browser in:
    give it to nobody. From another machine, forward the port by ssh.
    """
    connection = Connection()
    if close:
        connection.delete("/api/studio")
        print_status("the yard does not listen on the network any more")
        return
    address = connection.post("/api/studio", {"port": port})
    if as_json:
        print_json(address)
        return
    if not no_open and _opened(f"{address['url']}?token={address['ticket']}"):
        print_status(f"the studio is at {address['url']}")
        return
    print(f"{address['url']}?token={address['token']}")


def _opened(url: str) -> bool:
    """The address is seen by whoever may list processes, so it has a ticket in it that works once, not the token."""
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
