from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.sdk.data.reference import normalize_path
from runyard.sdk.data.transfer import run_transfer

app = new_app(no_args_is_help=True)


def _names(incomplete: str) -> list[str]:
    connection = Connection()
    if not connection.is_running():
        return []
    return [one["name"] for one in connection.get("/api/datastores") if one["name"].startswith(incomplete)]


Store = Annotated[str, typer.Argument(metavar="NAME", help="A datastore.", autocompletion=_names)]
Place = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="A datastore, or a file or folder of one: workspaceblobstore/mnist. /mnist is of the default one.",
        autocompletion=_names,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there and differs.")]


@app.callback()
def data() -> None:
    """Datastores: add them, look into them, upload and download."""


@app.command("stores", cls=Command)
def list_stores(as_json: Json = False) -> None:
    """List the datastores."""
    found = Connection().get("/api/datastores")
    if as_json:
        print_json(found)
        return
    rows = [(one["name"], one["kind"], _where(one), "yes" if one["is_default"] else "") for one in found]
    print_table(("NAME", "KIND", "WHERE", "DEFAULT"), rows)


@app.command(cls=Command)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called from now on.")],
    folder: Annotated[str, typer.Option(metavar="FOLDER", help="A folder of this machine.")] = "",
    bucket: Annotated[str, typer.Option(metavar="NAME", help="A bucket of S3; with --google, of Google.")] = "",
    container: Annotated[str, typer.Option(metavar="NAME", help="A container of Azure, with --account.")] = "",
    account: Annotated[str, typer.Option(metavar="NAME", help="The storage account of Azure.")] = "",
    google: Annotated[bool, typer.Option("--google", help="The bucket is one of Google Cloud Storage.")] = False,
    endpoint: Annotated[str, typer.Option(metavar="URL", help="The server, where it is not the cloud's own.")] = "",
    region: Annotated[str, typer.Option(metavar="NAME", help="The region of an S3 bucket.")] = "",
    prefix: Annotated[str, typer.Option(metavar="PATH", help="Only what is below this path.")] = "",
    anonymous: Annotated[bool, typer.Option("--anonymous", help="It is open to everybody.")] = False,
    credentials: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help='A JSON file, or - for stdin: {"access_key_id": …, "secret_access_key": …}, {"account_key": …}, '
            '{"sas_token": …} or {"service_account_key": …}. Default: the environment of the yard.',
        ),
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="It may take the place of another one.")] = False,
    untried: Annotated[bool, typer.Option("--untried", help="Do not ask it whether it lets us in.")] = False,
) -> None:
    """Add a datastore: a folder, or a bucket or container of S3, Google or Azure. Credentials are never shown again."""
    kinds = {"folder": folder, "gcs" if google else "s3": bucket, "azure_blob": container}
    chosen = [kind for kind, value in kinds.items() if value]
    if len(chosen) != 1:
        raise UserErrorException(
            "a datastore is one of a folder, a bucket and a container", hint="give --folder, --bucket or --container"
        )
    shown: dict[str, Any] = {
        "path": str(Path(folder).expanduser().absolute()) if folder else "",
        "bucket": bucket,
        "container_name": container,
        "account_name": account,
        "endpoint": endpoint,
        "region": region,
        "prefix": prefix,
        "anonymous": anonymous or "",
    }
    body = {
        "name": name,
        "kind": chosen[0],
        "configuration": {**{k: v for k, v in shown.items() if v}, **_credentials(credentials)},
        "overwrite": overwrite,
        "skip_validation": untried,
    }
    added = Connection().post("/api/datastores", body)
    print_status(f"added {added['name']}: {_where(added)}")


@app.command(cls=Command)
def show(name: Store, as_json: Json = False) -> None:
    """Show a datastore: where it is, and where its credentials come from."""
    found = Connection().get(f"/api/datastores/{name}")
    if as_json:
        print_json(found)
        return
    words = {"kept": "kept by the yard", "environment": "those in the yard's environment", "none": "it needs none"}
    print(f"{found['name']}{' (the default)' if found['is_default'] else ''}: {found['kind']}")
    for key, value in sorted(found["configuration"].items()):
        print(f"  {key}: {value}")
    print(f"  credentials: {words[found['credentials']]}")


@app.command(cls=Command)
def remove(name: Store) -> None:
    """Forget a datastore and its credentials. What is in it stays."""
    connection = Connection()
    was_default = connection.get(f"/api/datastores/{name}")["is_default"]
    connection.delete(f"/api/datastores/{name}")
    # paths without a datastore, and `/mnist` here, lead elsewhere from now on
    now = f"; {connection.get('/api/datastores/-')['name']} is the default datastore now" if was_default else ""
    print_status(f"forgot {name}; what is in it stays{now}")


@app.command(cls=Command)
def default(name: Store) -> None:
    """Make a datastore the default one."""
    Connection().put(f"/api/datastores/{name}/default", b"")
    print_status(f"{name} is the default datastore")


@app.command(cls=Command)
def ls(
    place: Annotated[Optional[str], typer.Argument(metavar="PLACE", autocompletion=_names)] = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All files below, each on a line.")] = False,
    as_json: Json = False,
) -> None:
    """List the files and folders of a place, with the sizes of all that is in them. Default: the default datastore."""
    connection = Connection()
    name, below = _place(connection, place or "/")
    found = connection.get(f"/api/datastores/{name}/files", below=below, recursive=recursive)
    if as_json:
        print_json(found)
        return
    if not found["entries"] and below:
        raise UserErrorException(f"there is nothing at {below!r} in datastore {name!r}", hint=f"runyard data ls {name}")
    now = clock.now()
    rows = [
        (e["path"] + "/" * e["is_folder"], size_text(e["size"]), age_text(now - e["modified_at"]))
        for e in found["entries"]
    ]
    if rows:
        print_table(("PATH", "SIZE", "CHANGED"), rows, right=("SIZE", "CHANGED"))
    more = "; only the first are shown" if found["truncated"] else ""
    print_status(f"{count_text(found['files'], 'file')}, {size_text(found['bytes'])}{more}")


@app.command(cls=Command)
def upload(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder, or a file.")],
    place: Place,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Upload a folder with all that is in it, or a file. What is there already is left, unless --overwrite."""
    path = Path(source).expanduser().absolute()
    if not path.exists():
        raise UserErrorException(
            f"there is no file or folder {source!r}", hint="the source comes first: runyard data upload SOURCE PLACE"
        )
    connection = Connection()
    name, below = _place(connection, place)
    request: dict[str, Any] = {"kind": "upload", "datastore": name, "path": below, "overwrite": overwrite}
    request.update({"local": str(path)} if path.is_dir() else {"local": str(path.parent), "files": [path.name]})
    done = run_transfer(connection, request, not as_json, sys.stderr)
    if as_json:
        print_json(done)


@app.command(cls=Command)
def download(
    place: Place,
    target: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to; files keep their whole paths.")] = ".",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Download a file or a folder. What is there already is left, unless --overwrite."""
    connection = Connection()
    name, below = _place(connection, place)
    request = {
        "kind": "download",
        "datastore": name,
        "path": below,
        "local": str(Path(target).expanduser().absolute()),
        "overwrite": overwrite,
    }
    done = run_transfer(connection, request, not as_json, sys.stderr)
    if as_json:
        print_json(done)


@app.command(cls=Command)
def rm(place: Place, yes: Yes = False) -> None:
    """Delete a file, or a folder with all that is in it."""
    connection = Connection()
    name, below = _place(connection, place)
    if not below:
        raise UserErrorException(f"everything in {name!r} is not deleted in one go", hint="name a file or a folder")
    found = connection.get(f"/api/datastores/{name}/files", below=below)
    if not found["files"]:
        raise UserErrorException(f"there is nothing at {below!r} in datastore {name!r}", hint=f"runyard data ls {name}")
    words = f"{count_text(found['files'], 'file')}, {size_text(found['bytes'])}, at {below} of {name}"
    confirm(yes, f"deleting {words}", f"delete {words}?")
    connection.delete(f"/api/datastores/{name}/files", below=below)
    print_status(f"deleted {words}")


def _place(connection: Connection, text: str) -> tuple[str, str]:
    name, _, below = text.partition("/")
    return (name or str(connection.get("/api/datastores/-")["name"])), normalize_path(below)


def _where(one: dict[str, Any]) -> str:
    known = one["configuration"]
    if one["kind"] == "folder":
        return str(known["path"])
    if one["kind"] == "runs":
        return "the files of runs, to be read"
    place = known.get("bucket") or known.get("container_name") or known.get("filesystem")
    account = f"{known['account_name']}/" if known.get("account_name") else ""
    below = f"/{known['prefix']}" if known.get("prefix") else ""
    server = f" at {known['endpoint']}" if known.get("endpoint") else ""
    return f"{account}{place}{below}{server}"


def _credentials(file: str) -> dict[str, str]:
    if not file:
        return {}
    try:
        found = json.loads(sys.stdin.read() if file == "-" else Path(file).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserErrorException(
            f"the credentials in {file!r} cannot be read: {error}", hint="it is a JSON object"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UserErrorException(f"the credentials in {file!r} are no JSON object of texts")
    return found
