"""The `runyard invoke` command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.commands.services import complete_service
from runyard.cli.follow import print_status
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app()


@app.command(cls=Command)
def invoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.", autocompletion=complete_service)],
    body: Annotated[
        str, typer.Argument(metavar="BODY", help="Request body: text, @FILE, or - for standard input.")
    ] = "-",
    sample: Annotated[
        bool, typer.Option("--sample", help="Send the example of the service's OpenAPI document.")
    ] = False,
) -> int:
    """Send a request to a service and print the response. The exit code is 1 for an error response."""
    connection = Connection()
    if sample:
        input_schema = connection.get(f"/api/services/{name}/openapi")["components"]["schemas"]["ServiceInput"]
        if "example" not in input_schema:
            raise UserErrorException(f"{name} does not declare an example", hint="pass the request body")
        text = json.dumps(input_schema["example"])
    else:
        connection.get(f"/api/services/{name}")  # fail before the request is read from the terminal
        text = _request(body)
    response = connection.post(f"/api/services/{name}/invoke", {"body": text})
    print(response["text"])
    if response["status"] != 200:
        print_status(f"status {response['status']} after {response['ms']:g} ms, request {response['request_id']}")
        if response["status"] >= 500:
            print_status(f"next     runyard services logs {name}")
        return 1
    return 0


def _request(body: str) -> str:
    if body == "-":
        if sys.stdin.isatty():
            print_status("reading the request from the terminal; press Ctrl-D on an empty line to send it")
        return sys.stdin.read()
    if not body.startswith("@"):
        return body
    try:
        return Path(body[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise UserErrorException(
            f"cannot read the request file {body[1:]!r}: {error.strerror}",
            hint=f"@FILE is relative to {Path.cwd()}; without @, the text itself is sent",
        ) from None
    except UnicodeDecodeError:
        raise UserErrorException(
            f"the request file {body[1:]!r} is not UTF-8 text", hint="send binary data directly to the service"
        ) from None
