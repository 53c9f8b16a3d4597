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
    return [one["name"] for one in connection.get("/api/datasets") if one["name"].startswith(incomplete)]


Dataset = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, or a version of it: mnist:2.", autocompletion=_names)
]


@app.callback()
def datasets() -> None:
    """Name data, look at its versions and at what they point to."""


@app.command("list", cls=Command)
def list_datasets(as_json: Json = False) -> None:
    """List the datasets that are registered, each in its newest version."""
    found = Connection().get("/api/datasets")
    if as_json:
        print_json(found)
    elif not found:
        print_status("no datasets: `runyard datasets register NAME DATASTORE/PATH` or dataset.register(…) adds one")
    else:
        _print(found)


@app.command(cls=Command)
def show(name: Dataset, as_json: Json = False) -> None:
    """Show a dataset: its versions, the runs that used it, and whether its data is what it was."""
    connection = Connection()
    which = name_and_version(name)
    page = connection.get("/api/datasets/page", **which)
    now = _now(connection, which)
    if as_json:
        print_json({**page, "now": now})
        return
    one = page["dataset"]
    print(
        f"{one['name']}:{one['version']}  {one['kind']} dataset"
        + (f"  {one['description']}" if one["description"] else "")
    )
    print()
    for fact, text in _facts(one, now):
        print(f"{fact:<13}{text}")
    if len(page["versions"]) > 1:
        print()
        _print(page["versions"])
    if page["runs"]:
        print()
        _print_runs(page["runs"])


@app.command(cls=Command)
def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Any text.")],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="DATASTORE/PATH, with * and ** for names, or an address: https://…"),
    ],
    description: Annotated[Optional[str], typer.Option(metavar="TEXT", help="What it is.")] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="A tag; may be given often.")] = None,
    as_json: Json = False,
) -> None:
    """Register files as a dataset: the next version of a name. The same data again is the same version."""
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
    """List the files that a dataset has now."""
    connection = Connection()
    one = connection.get("/api/datasets/one", **name_and_version(name))
    found = connection.post("/api/datasets/files", {"definition": one["definition"]})["files"]
    if as_json:
        print_json(found)
    else:
        print_table(("SIZE", "FILE"), [(size_text(file["size"]), file["name"]) for file in found], right=("SIZE",))


@app.command(cls=Command)
def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name, with all of its versions.", autocompletion=_names)
    ],
    yes: Yes = False,
) -> None:
    """Unregister a dataset. Its files stay where they are, and runs still tell that they used it."""
    connection = Connection()
    versions = count_text(len(connection.get("/api/datasets/page", name=name)["versions"]), "version")
    confirm(yes, f"unregistering {name}, {versions},", f"unregister {name}, {versions}? Its files stay.")
    connection.delete("/api/datasets", name=name)
    print_status(f"{name} is not registered any more; its files were not touched")


def _source(connection: Connection, text: str) -> Any:
    from runyard.sdk.data.paths import parse_sources
    from runyard.spec.dataset import Source

    if "://" in text:
        return parse_sources(text)[0][0]
    datastore, _, path = text.partition("/")
    here = Path(text).expanduser()
    if datastore in ("", ".", "..", "~") or (here.exists() and datastore not in _stores(connection)):
        name = here.resolve().name or "data"
        raise UserErrorException(
            f"{text!r} is a path of this machine, and a dataset is made of what is in a datastore",
            hint=f"upload it first: runyard data upload {text} /{name}, then runyard datasets register NAME "
            f"{connection.get('/api/datastores/-')['name']}/{name}",
        )
    return Source(datastore, path)


def _stores(connection: Connection) -> list[str]:
    return [one["name"] for one in connection.get("/api/datastores")]


def _now(connection: Connection, which: dict[str, Any]) -> dict[str, Any]:
    """A source that is gone is no reason to show nothing of the dataset."""
    from runyard.errors import RunyardException, YardUnavailable

    try:
        found: dict[str, Any] = connection.get("/api/datasets/now", **which)
        return found
    except YardUnavailable:
        raise
    except RunyardException as error:
        return {"error": error.message}


def _facts(one: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str]]:
    found = [("source" if not place else "", source) for place, source in enumerate(one["sources"])]
    found.append(("size", f"{count_text(one['files'], 'file')}, {size_text(one['bytes'])}"))
    found.append(("digest", one["digest"]))
    if "error" in now:
        found.append(("now", f"gone: {now['error']}"))
    elif now["same"]:
        found.append(("now", "the same"))
    else:
        size = f"{count_text(now['files'], 'file')}, {size_text(now['bytes'])}"
        found.append(("now", f"changed: {size}, digest {now['digest'][:12]}"))
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one["created_at"]))
    found.append(("registered", at + (f" by run {one['run_id']}" if one["run_id"] else "")))
    if one["tags"]:
        found.append(("tags", ", ".join(k if v is None else f"{k}={v}" for k, v in one["tags"].items())))
    found.append(("id", one["dataset_id"]))
    return found


def _print(found: list[dict[str, Any]]) -> None:
    now = clock.now()
    print_table(
        ("NAME", "VERSION", "KIND", "FILES", "SIZE", "DIGEST", "AGE", "SOURCE"),
        [
            (
                one["name"] or "",
                str(one["version"] or ""),
                one["kind"],
                f"{one['files']:,}",
                size_text(one["bytes"]),
                (one["digest"] or "")[:12],
                age_text(now - one["created_at"]),
                ", ".join(one["sources"]),
            )
            for one in found
        ],
        right=("VERSION", "FILES", "SIZE", "AGE"),
    )


def _print_runs(runs: list[dict[str, Any]]) -> None:
    words = {True: "the same", False: "other data", None: ""}
    print_table(
        ("RUN", "STATUS", "INPUT", "MODE", "DATA"),
        [(r["run_id"], r["status"] or "gone", r["name"], r["mode"], words[r["same"]]) for r in runs],
    )
