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
    name: Annotated[str, typer.Argument(metavar="NAME", help="The service's name.", autocompletion=complete_service)],
    body: Annotated[
        str, typer.Argument(metavar="BODY", help="The request: text, @FILE, or - for standard input.")
    ] = "-",
    sample: Annotated[bool, typer.Option("--sample", help="Send the sample of the service's description.")] = False,
) -> int:
    """Call a service, with its key, and print what it answers. Exits with 1 when that is an error."""
    connection = Connection()
    if sample:
        described = connection.get(f"/api/services/{name}/openapi")["components"]["schemas"]["ServiceInput"]
        if "example" not in described:
            raise UserErrorException(f"{name} does not say what it takes", hint="give the request itself")
        text = json.dumps(described["example"])
    else:
        connection.get(f"/api/services/{name}")  # nobody should type a request to a service that is not there
        text = _request(body)
    answer = connection.post(f"/api/services/{name}/invoke", {"body": text})
    print(answer["text"])
    if answer["status"] != 200:
        print_status(f"answered {answer['status']} in {answer['ms']:g} ms: request {answer['request_id']}")
        if answer["status"] >= 500:
            print_status(f"next     runyard services logs {name}")
        return 1
    return 0


def _request(body: str) -> str:
    if body == "-":
        if sys.stdin.isatty():
            print_status("the request is read from the terminal; Ctrl-D on a line of its own ends it")
        return sys.stdin.read()
    if not body.startswith("@"):
        return body
    try:
        return Path(body[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise UserErrorException(
            f"the request's file {body[1:]!r} cannot be read: {error.strerror}",
            hint=f"@FILE is looked for in {Path.cwd()}; without the @ the text itself is sent",
        ) from None
    except UnicodeDecodeError:
        raise UserErrorException(
            f"the request's file {body[1:]!r} is not text in UTF-8", hint="send bytes to the service itself"
        ) from None
