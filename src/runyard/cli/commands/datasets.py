"""The `runyard datasets` command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text
from runyard.cli.inputs import name_and_version
from runyard.cli.run_lookup import Json, Yes, confirm, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)


def _names(incomplete: str) -> list[str]:
    connection = Connection()
    if not connection.is_running():
        return []
    return [view["name"] for view in connection.get("/api/datasets") if view["name"].startswith(incomplete)]


Dataset = Annotated[
    str, typer.Argument(metavar="NAME", help="Name, or name and version: mnist:2.", autocompletion=_names)
]


@app.callback()
def datasets() -> None:
    """Manage datasets and their versions."""


@app.command("list", cls=Command)
def list_datasets(as_json: Json = False) -> None:
    """List the registered datasets with their newest versions."""
    views = Connection().get("/api/datasets")
    if as_json:
        print_json(views)
    elif not views:
        print_status("no datasets; add one with `runyard datasets register NAME DATASTORE/PATH` or dataset.register(…)")
    else:
        _print(views)


@app.command(cls=Command)
def show(name: Dataset, as_json: Json = False) -> None:
    """Show a dataset: its versions, the runs that used it, and whether its data has changed."""
    connection = Connection()
    query = name_and_version(name)
    page = connection.get("/api/datasets/page", **query)
    now = _current_state(connection, query)
    if as_json:
        print_json({**page, "now": now})
        return
    view = page["dataset"]
    print(
        f"{view['name']}:{view['version']}  {view['kind']} dataset"
        + (f"  {view['description']}" if view["description"] else "")
    )
    print()
    for label, text in _facts(view, now):
        print(f"{label:<13}{text}")
    if len(page["versions"]) > 1:
        print()
        _print(page["versions"])
    if page["runs"]:
        print()
        _print_runs(page["runs"])


@app.command(cls=Command)
def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the dataset.")],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="DATASTORE/PATH, may contain * and **, or a URL: https://…"),
    ],
    description: Annotated[Optional[str], typer.Option(metavar="TEXT", help="Description.")] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="Add a tag. Repeatable.")] = None,
    as_json: Json = False,
) -> None:
    """Register files as a new version of a dataset. Unchanged data keeps its version."""
    from runyard.sdk.data.pinning import pin
    from runyard.spec.dataset import FILE, DatasetDefinition
    from runyard.spec.json import to_json

    connection = Connection()
    definition = DatasetDefinition(FILE, tuple(_source(connection, text) for text in sources))
    pin(connection, definition)
    tags = dict(text.partition("=")[::2] for text in tag or [])
    body = {"definition": to_json(definition), "name": name, "description": description, "tags": tags}
    view = connection.post("/api/datasets", {**body, "create_new_version": True})
    if as_json:
        print_json(view)
    else:
        size = f"{count_text(view['files'], 'file')}, {size_text(view['bytes'])}"
        print(f"{view['name']}:{view['version']}  {size}, digest {view['digest'][:12]}")


@app.command(cls=Command)
def files(name: Dataset, as_json: Json = False) -> None:
    """List the current files of a dataset."""
    connection = Connection()
    view = connection.get("/api/datasets/one", **name_and_version(name))
    entries = connection.post("/api/datasets/files", {"definition": view["definition"]})["files"]
    if as_json:
        print_json(entries)
    else:
        print_table(("SIZE", "FILE"), [(size_text(file["size"]), file["name"]) for file in entries], right=("SIZE",))


@app.command(cls=Command)
def remove(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the dataset; all versions are removed.", autocompletion=_names),
    ],
    yes: Yes = False,
) -> None:
    """Unregister a dataset. Its files and the records of runs that used it are kept."""
    connection = Connection()
    versions = count_text(len(connection.get("/api/datasets/page", name=name)["versions"]), "version")
    confirm(yes, f"unregistering {name} ({versions})", f"unregister {name} ({versions})? Its files are kept.")
    connection.delete("/api/datasets", name=name)
    print_status(f"unregistered {name}; its files were kept")


def _source(connection: Connection, text: str) -> Any:
    from runyard.sdk.data.paths import parse_sources
    from runyard.spec.dataset import Source

    if "://" in text:
        return parse_sources(text)[0][0]
    datastore, _, path = text.partition("/")
    local = Path(text).expanduser()
    if datastore in ("", ".", "..", "~") or (local.exists() and datastore not in _stores(connection)):
        name = local.resolve().name or "data"
        raise UserErrorException(
            f"{text!r} is a local path; a dataset consists of files in a datastore",
            hint=f"upload it first: runyard data upload {text} /{name}, then runyard datasets register NAME "
            f"{connection.get('/api/datastores/-')['name']}/{name}",
        )
    return Source(datastore, path)


def _stores(connection: Connection) -> list[str]:
    return [store["name"] for store in connection.get("/api/datastores")]


def _current_state(connection: Connection, query: dict[str, Any]) -> dict[str, Any]:
    """The dataset's current data; an unavailable source must not hide the rest of the page."""
    from runyard.errors import RunyardException, YardUnavailable

    try:
        state: dict[str, Any] = connection.get("/api/datasets/now", **query)
        return state
    except YardUnavailable:
        raise
    except RunyardException as error:
        return {"error": error.message}


def _facts(view: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("source" if not index else "", source) for index, source in enumerate(view["sources"])]
    facts.append(("size", f"{count_text(view['files'], 'file')}, {size_text(view['bytes'])}"))
    facts.append(("digest", view["digest"]))
    if "error" in now:
        facts.append(("now", f"unavailable: {now['error']}"))
    elif now["same"]:
        facts.append(("now", "unchanged"))
    else:
        size = f"{count_text(now['files'], 'file')}, {size_text(now['bytes'])}"
        facts.append(("now", f"changed: {size}, digest {now['digest'][:12]}"))
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(view["created_at"]))
    facts.append(("registered", at + (f" by run {view['run_id']}" if view["run_id"] else "")))
    if view["tags"]:
        facts.append(("tags", ", ".join(k if v is None else f"{k}={v}" for k, v in view["tags"].items())))
    facts.append(("id", view["dataset_id"]))
    return facts


def _print(views: list[dict[str, Any]]) -> None:
    now = clock.now()
    print_table(
        ("NAME", "VERSION", "KIND", "FILES", "SIZE", "DIGEST", "AGE", "SOURCE"),
        [
            (
                view["name"] or "",
                str(view["version"] or ""),
                view["kind"],
                f"{view['files']:,}",
                size_text(view["bytes"]),
                (view["digest"] or "")[:12],
                age_text(now - view["created_at"]),
                ", ".join(view["sources"]),
            )
            for view in views
        ],
        right=("VERSION", "FILES", "SIZE", "AGE"),
    )


def _print_runs(runs: list[dict[str, Any]]) -> None:
    texts = {True: "unchanged", False: "different", None: ""}
    print_table(
        ("RUN", "STATUS", "INPUT", "MODE", "DATA"),
        [(r["run_id"], r["status"] or "deleted", r["name"], r["mode"], texts[r["same"]]) for r in runs],
    )
