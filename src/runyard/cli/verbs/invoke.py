from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from runyard.cli.following import say
from runyard.cli.verb import Verb, new_verb
from runyard.cli.verbs.services import complete_service
from runyard.client.transport import Connection
from runyard.errors import UserErrorException

app = new_verb()


@app.command(cls=Verb)
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
    elif body == "-":
        text = sys.stdin.read()
    elif body.startswith("@"):
        text = Path(body[1:]).read_text(encoding="utf-8")
    else:
        text = body
    answer = connection.post(f"/api/services/{name}/invoke", {"body": text})
    print(answer["text"])
    if answer["status"] != 200:
        say(f"answered {answer['status']} in {answer['ms']:g} ms: request {answer['request_id']}")
        return 1
    return 0
