"""The `runyard data` command."""

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
    return [store["name"] for store in connection.get("/api/datastores") if store["name"].startswith(incomplete)]


Store = Annotated[str, typer.Argument(metavar="NAME", help="Name of a datastore.", autocompletion=_names)]
DataPath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="Datastore, or a file or folder in it: workspaceblobstore/mnist. /mnist is in the default datastore.",
        autocompletion=_names,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files that differ.")]


@app.callback()
def data() -> None:
    """Manage datastores: add, list, upload, download."""


@app.command("stores", cls=Command)
def list_stores(as_json: Json = False) -> None:
    """List the datastores."""
    stores = Connection().get("/api/datastores")
    if as_json:
        print_json(stores)
        return
    rows = [(store["name"], store["kind"], _where(store), "yes" if store["is_default"] else "") for store in stores]
    print_table(("NAME", "KIND", "WHERE", "DEFAULT"), rows)


@app.command(cls=Command)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new datastore.")],
    folder: Annotated[str, typer.Option(metavar="FOLDER", help="Folder on this machine.")] = "",
    bucket: Annotated[
        str, typer.Option(metavar="NAME", help="S3 bucket; with --google, a Google Cloud Storage bucket.")
    ] = "",
    container: Annotated[str, typer.Option(metavar="NAME", help="Azure blob container; requires --account.")] = "",
    account: Annotated[str, typer.Option(metavar="NAME", help="Azure storage account.")] = "",
    google: Annotated[bool, typer.Option("--google", help="The bucket is in Google Cloud Storage.")] = False,
    endpoint: Annotated[str, typer.Option(metavar="URL", help="Server URL, if it is not the cloud provider's.")] = "",
    region: Annotated[str, typer.Option(metavar="NAME", help="Region of the S3 bucket.")] = "",
    prefix: Annotated[str, typer.Option(metavar="PATH", help="Use only this path of the bucket or container.")] = "",
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Access without credentials.")] = False,
    credentials: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help='A JSON file, or - for stdin: {"access_key_id": …, "secret_access_key": …}, {"account_key": …}, '
            '{"sas_token": …} or {"service_account_key": …}. Default: environment variables of the yard.',
        ),
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing datastore of this name.")] = False,
    untried: Annotated[bool, typer.Option("--untried", help="Skip the access check.")] = False,
) -> None:
    """Add a datastore: a folder, or an S3, Google or Azure bucket. Credentials are never shown again."""
    kinds = {"folder": folder, "gcs" if google else "s3": bucket, "azure_blob": container}
    selected = [kind for kind, value in kinds.items() if value]
    if len(selected) != 1:
        raise UserErrorException(
            "specify exactly one of --folder, --bucket and --container", hint="see runyard data add --help"
        )
    configuration: dict[str, Any] = {
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
        "kind": selected[0],
        "configuration": {**{k: v for k, v in configuration.items() if v}, **_credentials(credentials)},
        "overwrite": overwrite,
        "skip_validation": untried,
    }
    added = Connection().post("/api/datastores", body)
    print_status(f"added {added['name']}: {_where(added)}")


@app.command(cls=Command)
def show(name: Store, as_json: Json = False) -> None:
    """Show a datastore: its location and the source of its credentials."""
    store = Connection().get(f"/api/datastores/{name}")
    if as_json:
        print_json(store)
        return
    sources = {"kept": "stored by the yard", "environment": "from the yard's environment", "none": "not needed"}
    print(f"{store['name']}{' (default)' if store['is_default'] else ''}: {store['kind']}")
    for key, value in sorted(store["configuration"].items()):
        print(f"  {key}: {value}")
    print(f"  credentials: {sources[store['credentials']]}")


@app.command(cls=Command)
def remove(name: Store) -> None:
    """Remove a datastore and its credentials. Its files are kept."""
    connection = Connection()
    was_default = connection.get(f"/api/datastores/{name}")["is_default"]
    connection.delete(f"/api/datastores/{name}")
    # paths without a datastore, such as `/mnist`, now refer to another datastore
    note = f"; {connection.get('/api/datastores/-')['name']} is now the default datastore" if was_default else ""
    print_status(f"removed {name}; its files were kept{note}")


@app.command(cls=Command)
def default(name: Store) -> None:
    """Make a datastore the default."""
    Connection().put(f"/api/datastores/{name}/default", b"")
    print_status(f"{name} is the default datastore")


@app.command(cls=Command)
def ls(
    path: Annotated[Optional[str], typer.Argument(metavar="PATH", autocompletion=_names)] = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="List all files below, one per line.")] = False,
    as_json: Json = False,
) -> None:
    """List files and folders with their total sizes. Default: the default datastore."""
    connection = Connection()
    name, below = _parse_path(connection, path or "/")
    listing = connection.get(f"/api/datastores/{name}/files", below=below, recursive=recursive)
    if as_json:
        print_json(listing)
        return
    if not listing["entries"] and below:
        raise UserErrorException(f"{below!r} not found in datastore {name!r}", hint=f"see runyard data ls {name}")
    now = clock.now()
    rows = [
        (e["path"] + "/" * e["is_folder"], size_text(e["size"]), age_text(now - e["modified_at"]))
        for e in listing["entries"]
    ]
    if rows:
        print_table(("PATH", "SIZE", "CHANGED"), rows, right=("SIZE", "CHANGED"))
    more = "; the list is truncated" if listing["truncated"] else ""
    print_status(f"{count_text(listing['files'], 'file')}, {size_text(listing['bytes'])}{more}")


@app.command(cls=Command)
def upload(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Folder or file to upload.")],
    path: DataPath,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Upload a file or a folder. Existing files are kept unless --overwrite is given."""
    local = Path(source).expanduser().absolute()
    if not local.exists():
        raise UserErrorException(
            f"no file or folder {source!r}", hint="the source comes first: runyard data upload SOURCE PATH"
        )
    connection = Connection()
    name, below = _parse_path(connection, path)
    request: dict[str, Any] = {"kind": "upload", "datastore": name, "path": below, "overwrite": overwrite}
    request.update({"local": str(local)} if local.is_dir() else {"local": str(local.parent), "files": [local.name]})
    result = run_transfer(connection, request, not as_json, sys.stderr)
    if as_json:
        print_json(result)


@app.command(cls=Command)
def download(
    path: DataPath,
    target: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Destination folder; files keep their full paths.")
    ] = ".",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Download a file or a folder. Existing files are kept unless --overwrite is given."""
    connection = Connection()
    name, below = _parse_path(connection, path)
    request = {
        "kind": "download",
        "datastore": name,
        "path": below,
        "local": str(Path(target).expanduser().absolute()),
        "overwrite": overwrite,
    }
    result = run_transfer(connection, request, not as_json, sys.stderr)
    if as_json:
        print_json(result)


@app.command(cls=Command)
def rm(path: DataPath, yes: Yes = False) -> None:
    """Delete a file or a folder."""
    connection = Connection()
    name, below = _parse_path(connection, path)
    if not below:
        raise UserErrorException(f"cannot delete the whole datastore {name!r}", hint="specify a file or a folder")
    listing = connection.get(f"/api/datastores/{name}/files", below=below)
    if not listing["files"]:
        raise UserErrorException(f"{below!r} not found in datastore {name!r}", hint=f"see runyard data ls {name}")
    description = f"{count_text(listing['files'], 'file')}, {size_text(listing['bytes'])}, at {name}/{below}"
    confirm(yes, f"deleting {description}", f"delete {description}?")
    connection.delete(f"/api/datastores/{name}/files", below=below)
    print_status(f"deleted {description}")


def _parse_path(connection: Connection, text: str) -> tuple[str, str]:
    name, _, below = text.partition("/")
    return (name or str(connection.get("/api/datastores/-")["name"])), normalize_path(below)


def _where(store: dict[str, Any]) -> str:
    configuration = store["configuration"]
    if store["kind"] == "folder":
        return str(configuration["path"])
    if store["kind"] == "runs":
        return "files of runs, read-only"
    bucket = configuration.get("bucket") or configuration.get("container_name") or configuration.get("filesystem")
    account = f"{configuration['account_name']}/" if configuration.get("account_name") else ""
    below = f"/{configuration['prefix']}" if configuration.get("prefix") else ""
    server = f" at {configuration['endpoint']}" if configuration.get("endpoint") else ""
    return f"{account}{bucket}{below}{server}"


def _credentials(file: str) -> dict[str, str]:
    if not file:
        return {}
    try:
        text = sys.stdin.read() if file == "-" else Path(file).expanduser().read_text(encoding="utf-8")
        credentials = json.loads(text)
    except (OSError, ValueError) as error:
        raise UserErrorException(
            f"cannot read the credentials in {file!r}: {error}", hint="expected a JSON object"
        ) from error
    if not isinstance(credentials, dict) or not all(isinstance(value, str) for value in credentials.values()):
        raise UserErrorException(f"the credentials in {file!r} must be a JSON object with string values")
    return credentials
