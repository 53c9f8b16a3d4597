"""The `runyard secrets` command."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret.")]
_MAX_BYTES = 1 << 20  # the yard refuses less; this only avoids reading a disk image


@app.callback()
def secrets() -> None:
    """Store secrets for runs: tokens, passwords, keys.

    Runs refer to them by name (`runyard run --secret HF_TOKEN=hf-token train.py`) and get the value as an environment
    variable. Values are encrypted in the home folder and never shown again.
    """


@app.command("set", cls=Command)
def set_secret(
    name: _Name,
    from_file: Annotated[
        str, typer.Option("--from-file", metavar="FILE", help="File that contains the value, unchanged.")
    ] = "",
) -> None:
    """Store or replace a secret.

    The value is read from a prompt without echo, from FILE, or from stdin without its last line break. It is never
    an argument: other users of a machine can read the arguments of its processes.
    """
    value = _read_file(name, Path(from_file).expanduser()) if from_file else _read_terminal_or_stdin(name)
    reply = Connection().post("/api/secrets", {"name": name, "value": value})
    variable = name.upper().replace("-", "_")
    print_status(f"secret {name} {'set' if reply['created'] else 'replaced'}")
    print_status(f"use it with runyard run --secret {name} SCRIPT, which sets the variable {variable}")


@app.command("list", cls=Command)
def list_secrets(as_json: Json = False) -> None:
    """List the names of secrets. Values are not shown."""
    stored = Connection().get("/api/secrets")
    if as_json:
        print_json(stored)
    elif not stored:
        print_status("no secrets; store one with runyard secrets set NAME")
    else:
        now = clock.now()
        print_table(
            ["NAME", "UPDATED", "CREATED"],
            [
                [secret["name"], age_text(now - secret["updated_at"]), age_text(now - secret["created_at"])]
                for secret in stored
            ],
        )


@app.command(cls=Command)
def delete(name: _Name, yes: Yes = False) -> None:
    """Delete a secret. Runs that have started keep the value; runs that start later fail."""
    confirm(yes, "deleting a secret", f"delete secret {name}?")
    Connection().delete(f"/api/secrets/{name}")
    print_status(f"secret {name} deleted")


def _read_file(name: str, path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return _decode(name, file.read(_MAX_BYTES))
    except OSError as error:
        raise UserErrorException(f"cannot read {path}: {error.strerror}") from error


def _read_terminal_or_stdin(name: str) -> str:
    if sys.stdin.isatty():
        try:
            return getpass.getpass(f"value of {name}: ")
        except EOFError:
            raise typer.Abort from None
    value = _decode(name, sys.stdin.buffer.read(_MAX_BYTES))
    return value[:-1] if value.endswith("\n") else value  # of `echo`, and of an editor


def _decode(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UserErrorException(
            f"the value of secret {name!r} is not text",
            hint=f"encode it: base64 -w0 FILE | runyard secrets set {name}",
        ) from None
