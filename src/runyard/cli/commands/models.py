"""The `runyard models` command."""

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
    """Shell completion. Does not start a yard that is not running."""
    connection = Connection()
    if not connection.is_running():
        return []
    names = dict.fromkeys(view["name"] for view in connection.get("/api/models", latest=True))
    return [name for name in names if name.startswith(incomplete)]


ModelName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the model.", autocompletion=complete_model)]
ModelVersion = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="digits (latest version), digits:3 or digits:champion.", autocompletion=complete_model
    ),
]


@app.callback()
def models() -> None:
    """Register models; tag, approve and compare their versions."""


@app.command("list", cls=Command)
def list_models(
    name: Annotated[
        Optional[str],
        typer.Argument(metavar="NAME", help="List all versions of this model.", autocompletion=complete_model),
    ] = None,
    tag: Annotated[
        Optional[list[str]], typer.Option(metavar="KEY[=VALUE]", help="Only models with this tag. Repeatable.")
    ] = None,
    stage: Annotated[Optional[str], typer.Option(metavar="STAGE", help="Only models at this stage.")] = None,
    run: Annotated[
        Optional[str], typer.Option(metavar="RUN", help="Only models of this run.", autocompletion=complete_run)
    ] = None,
    as_json: Json = False,
) -> None:
    """List models with their latest versions; with a name, all versions of that model."""
    import json

    connection = Connection()
    tags = {key: value if equals else None for key, equals, value in (text.partition("=") for text in tag or [])}
    run_id = find_run(connection, run)["run_id"] if run else None
    if name:
        connection.get(f"/api/models/{name}")  # raises an error for an unknown name
    views = connection.get(
        "/api/models",
        name=name,
        tags=json.dumps(tags) if tags else None,
        stage=stage,
        run_id=run_id,
        latest=(not name and not run) or None,
    )
    if as_json:
        print_json(views)
    elif not views:
        empty = "no models; add one with runyard models register NAME PATH or run.register_model(…)"
        print_status("no matching models" if tag or stage or run else empty)
    else:
        _print(views)


@app.command(cls=Command)
def show(model: ModelVersion, as_json: Json = False) -> None:
    """Show one version: its origin, metrics, files and history."""
    page = _page(Connection(), model)
    if as_json:
        print_json(page)
        return
    print(page["model"]["id"])
    for name, text in facts(page):
        print(f"  {name:<12}{text}")


@app.command(cls=Command)
def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name; an existing model gets a new version.")],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="File or folder; with --run, a file or folder of that run.")
    ],
    run: Annotated[
        Optional[str], typer.Option(metavar="RUN", help="Run that produced the model.", autocompletion=complete_run)
    ] = None,
    tag: Annotated[Optional[list[str]], typer.Option(metavar="KEY=VALUE", help="Add a tag. Repeatable.")] = None,
    description: Annotated[Optional[str], typer.Option(metavar="TEXT", help="Description.")] = None,
    framework: Annotated[
        Optional[str], typer.Option(metavar="NAME", help="PyTorch, TensorFlow, TfKeras, ScikitLearn, Onnx, Custom.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Register a file or a folder as the next version of a model."""
    from runyard import Experiment, Model, Run, Workspace

    tags = dict(_pair(text) for text in tag or [])
    workspace = Workspace()
    with contextlib.redirect_stdout(sys.stderr):  # its messages are not data
        if run:
            view = find_run(workspace.connection, run)
            run_object = Run(Experiment(workspace, view["experiment"]), view["run_id"], _view=view)
            registered = run_object.register_model(
                name, path, tags=tags, description=description, model_framework=framework
            )
        else:
            registered = Model.register(
                workspace, path, name, tags=tags, description=description, model_framework=framework
            )
    if as_json:
        print_json(workspace.connection.get(f"/api/models/{registered.name}/versions/{registered.version}")["model"])
    else:
        print(registered.id)
        print_status(f"next     runyard models show {registered.id}   runyard models alias {registered.id} champion")


@app.command(cls=Command)
def download(
    model: ModelVersion,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FOLDER", help="Destination folder.")] = ".",
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing files.")] = False,
) -> None:
    """Download the registered file or folder."""
    from runyard import Model, Workspace

    workspace = Workspace()
    page = _page(workspace.connection, model)
    path = Model(workspace, id=page["model"]["id"]).download(output, exist_ok=replace)
    print(path)
    print_status(f"{count_text(len(page['files']), 'file')}, {size_text(page['model']['size'])}")


@app.command(cls=Command)
def alias(
    model: ModelVersion,
    name: Annotated[str, typer.Argument(metavar="ALIAS", help="Alias, such as champion.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the alias.")] = False,
) -> None:
    """Set an alias for a version; lookups of the alias return this version."""
    from runyard import Model, Workspace

    version = Model(Workspace(), id=model)
    if remove:
        version.remove_alias(name)
        print_status(f"removed the alias {version.name}:{name}")
    else:
        version.set_alias(name)
        print_status(f"{version.name}:{name} is version {version.version}")


@app.command(cls=Command)
def stage(
    model: ModelVersion,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="none, candidate, approved, rejected or archived.")],
    note: Annotated[Optional[str], typer.Option("--note", "-m", metavar="TEXT", help="Comment.")] = None,
) -> None:
    """Set the approval stage of a version. The change is recorded in its history."""
    from runyard import Model, Workspace

    version = Model(Workspace(), id=model)
    before = version.stage
    version.set_stage(stage, note)
    print_status(f"{version.id}: {before} → {version.stage}")


@app.command(cls=Command)
def compare(
    left: ModelVersion,
    right: Annotated[str, typer.Argument(metavar="OTHER", help="Model, or a version of the same model: 4.")],
    as_json: Json = False,
) -> None:
    """Compare two versions: metrics, and differences in packages, data, files and labels."""
    from runyard import Model, Workspace

    comparison = Model(Workspace(), id=left).compare(right)
    if as_json:
        print_json(comparison)
        return
    for line in comparison_lines(comparison):
        print(line)


@app.command(cls=Command)
def delete(
    model: ModelVersion,
    yes: Yes = False,
) -> None:
    """Delete one version. Not possible while a service uses it or an alias refers to it."""
    from runyard import Model, Workspace

    if ":" not in model:
        raise UserErrorException(
            f"specify a version of {model!r}",
            hint=f"list them with runyard models list {model}; {model}:1 is the first",
        )
    version = Model(Workspace(), id=model)
    confirm(yes, f"deleting {version.id}", f"delete {version.id}, {size_text(version.size)}?")
    version.delete()
    print_status(f"deleted {version.id}")


def _page(connection: Connection, text: str) -> dict[str, Any]:
    name, _, version = text.partition(":")
    page: dict[str, Any] = connection.get(f"/api/models/{name}/versions/{version or 'latest'}")
    return page


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserErrorException(f"--tag must be KEY=VALUE, got {text!r}")
    return key, value


def _print(views: list[dict[str, Any]]) -> None:
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
            for view in views
        ],
        right=("SIZE", "AGE"),
    )
