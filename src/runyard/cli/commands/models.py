from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any, Optional

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import age_text, count_text, size_text, value_text
from runyard.cli.model_text import comparison_lines, facts
from runyard.cli.run_lookup import Json, Yes, complete_run, confirm, find_run, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException

app = new_app(no_args_is_help=True)


def complete_model(incomplete: str) -> list[str]:
    """For the shell. A yard that does not run is not started for the sake of a Tab."""
    connection = Connection()
    if not connection.is_running():
        return []
    names = dict.fromkeys(view["name"] for view in connection.get("/api/models", latest=True))
    return [name for name in names if name.startswith(incomplete)]


ModelName = Annotated[str, typer.Argument(metavar="NAME", help="The model's name.", autocompletion=complete_model)]
OneModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="digits is the latest; digits:3, digits:champion.", autocompletion=complete_model
    ),
]


@app.callback()
def models() -> None:
    """Register models; name, approve and compare their versions."""


@app.command("list", cls=Command)
def list_models(
    name: Annotated[
        Optional[str], typer.Argument(metavar="NAME", help="All versions of this one.", autocompletion=complete_model)
    ] = None,
    tag: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY[=VALUE]", help="Only with this tag. Repeatable.")
    ] = None,
    stage: Annotated[Optional[str], typer.Option(metavar="STAGE", help="Only at this stage.")] = None,
    run: Annotated[
        Optional[str], typer.Option(metavar="RUN", help="Only of this run.", autocompletion=complete_run)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the models, each in its latest version; with a name, all of its versions."""
    import json

    connection = Connection()
    tags = {key: value if there else None for key, there, value in (one.partition("=") for one in tag or [])}
    run_id = find_run(connection, run)["run_id"] if run else None
    if name:
        connection.get(f"/api/models/{name}")  # an unknown name is an error, and says which are there
    found = connection.get(
        "/api/models",
        name=name,
        tags=json.dumps(tags) if tags else None,
        stage=stage,
        run_id=run_id,
        latest=(not name and not run) or None,
    )
    if as_json:
        print_json(found)
    elif not found:
        none = "no models: runyard models register NAME PATH, or run.register_model(…), adds one"
        print_status("no models like that" if tag or stage or run else none)
    else:
        _print(found)


@app.command(cls=Command)
def show(model: OneModel, as_json: Json = False) -> None:
    """Show one version: what it is, where it comes from, its files, and who did what to it."""
    page = _page(Connection(), model)
    if as_json:
        print_json(page)
        return
    print(page["model"]["id"])
    for name, text in facts(page):
        print(f"  {name:<12}{text}")


@app.command(cls=Command)
def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Registered again, it is the next version.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or folder; with --run, one of the run's files.")],
    run: Annotated[
        Optional[str], typer.Option(metavar="RUN", help="Of which run.", autocompletion=complete_run)
    ] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="A tag. Repeatable.")] = None,
    description: Annotated[Optional[str], typer.Option(metavar="TEXT", help="What it is.")] = None,
    framework: Annotated[
        Optional[str], typer.Option(metavar="NAME", help="PyTorch, TensorFlow, TfKeras, ScikitLearn, Onnx, Custom.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a file or a folder as the next version of a model."""
    from runyard import Experiment, Model, Run, Workspace

    tags = dict(_pair(one) for one in tag or [])
    workspace = Workspace()
    with contextlib.redirect_stdout(sys.stderr):  # what it says of itself is no data
        if run:
            view = find_run(workspace.connection, run)
            of = Run(Experiment(workspace, view["experiment"]), view["run_id"], _view=view)
            made = of.register_model(name, path, tags=tags, description=description, model_framework=framework)
        else:
            made = Model.register(workspace, path, name, tags=tags, description=description, model_framework=framework)
    if as_json:
        print_json(workspace.connection.get(f"/api/models/{made.name}/versions/{made.version}")["model"])
    else:
        print(made.id)
        print_status(f"next     runyard models show {made.id}   runyard models alias {made.id} champion")


@app.command(cls=Command)
def download(
    model: OneModel,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help="Where it goes.")] = ".",
    replace: Annotated[bool, typer.Option("--replace", help="Over files that are there.")] = False,
) -> None:
    """Download the file or folder that was registered."""
    from runyard import Model, Workspace

    workspace = Workspace()
    page = _page(workspace.connection, model)
    place = Model(workspace, id=page["model"]["id"]).download(output, exist_ok=replace)
    print(place)
    print_status(f"{count_text(len(page['files']), 'file')}, {size_text(page['model']['size'])}")


@app.command(cls=Command)
def alias(
    model: OneModel,
    name: Annotated[str, typer.Argument(metavar="ALIAS", help="Such as champion.")],
    remove: Annotated[bool, typer.Option("--remove", help="The alias names nothing any more.")] = False,
) -> None:
    """Give a version a name of its own; whoever asks for it gets this version from now on."""
    from runyard import Model, Workspace

    found = Model(Workspace(), id=model)
    if remove:
        found.remove_alias(name)
        print_status(f"{found.name}:{name} is no more")
    else:
        found.set_alias(name)
        print_status(f"{found.name}:{name} is version {found.version}")


@app.command(cls=Command)
def stage(
    model: OneModel,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="none, candidate, approved, rejected or archived.")],
    note: Annotated[Optional[str], typer.Option("--note", "-m", metavar="TEXT", help="Why.")] = None,
) -> None:
    """Say how far a version has come; who said so, and when, is kept."""
    from runyard import Model, Workspace

    found = Model(Workspace(), id=model)
    before = found.stage
    found.set_stage(stage, note)
    print_status(f"{found.id}: {before} → {found.stage}")


@app.command(cls=Command)
def compare(
    left: OneModel,
    right: Annotated[str, typer.Argument(metavar="OTHER", help="A model, or a version of the same one: 4.")],
    as_json: Json = False,
) -> None:
    """Show two versions side by side: metrics, and what differs of packages, data, files and labels."""
    from runyard import Model, Workspace

    found = Model(Workspace(), id=left).compare(right)
    if as_json:
        print_json(found)
        return
    for line in comparison_lines(found):
        print(line)


@app.command(cls=Command)
def delete(
    model: OneModel,
    yes: Yes = False,
) -> None:
    """Delete one version. Refused while a service uses it or an alias names it."""
    from runyard import Model, Workspace

    if ":" not in model:
        raise UserErrorException(
            f"say which version of {model!r}", hint=f"runyard models list {model} shows them; {model}:1 is the first"
        )
    found = Model(Workspace(), id=model)
    confirm(yes, f"deleting {found.id}", f"delete {found.id}, {size_text(found.size)}?")
    found.delete()
    print_status(f"deleted {found.id}")


def _page(connection: Connection, text: str) -> dict[str, Any]:
    name, _, version = text.partition(":")
    page: dict[str, Any] = connection.get(f"/api/models/{name}/versions/{version or 'latest'}")
    return page


def _pair(text: str) -> tuple[str, str]:
    key, there, value = text.partition("=")
    if not there:
        raise UserErrorException(f"--tag takes KEY=VALUE, not {text!r}")
    return key, value


def _print(found: list[dict[str, Any]]) -> None:
    now = clock.now()
    print_table(
        ("MODEL", "STAGE", "ALIASES", "FRAMEWORK", "SIZE", "AGE", "METRICS"),
        [
            (
                view["id"],
                view["stage"],
                ",".join(view["aliases"]),
                view["framework"] or "",
                size_text(view["size"]),
                age_text(now - view["created_at"]),
                ", ".join(f"{name} {value_text(value)}" for name, value in list(view["metrics"].items())[:4]),
            )
            for view in found
        ],
        right=("SIZE", "AGE"),
    )
