"""The verbs as Typer commands, each imported when it is called."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

_USAGE: Any = typer.BadParameter.__mro__[1]  # Typer's own UsageError, whose module moved between its versions
_STOPPED: Any = typer.BadParameter.__mro__[2]


def run_command(verbs: dict[str, str], arguments: list[str]) -> int:
    command = make_command(verbs)
    try:
        result = command.main(arguments, prog_name="runyard", standalone_mode=False)
    except _USAGE as error:
        return _wrong_usage(error)
    except _STOPPED as error:
        print(f"error: {error.format_message()}", file=sys.stderr)
        return 1
    except typer.Abort:
        print("stopped, nothing was done", file=sys.stderr)
        return 1
    if result == 130:  # Typer makes this of a Ctrl-C
        from runyard.cli.follow import Told

        if not isinstance(result, Told):
            print("interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def make_command(verbs: dict[str, str]) -> Contents:
    app = typer.Typer(cls=Contents, rich_markup_mode=None, add_completion=True, no_args_is_help=True)
    app.callback()(_runyard)
    command = get_command(app)
    assert isinstance(command, Contents)
    for name, summary in verbs.items():
        command.add_command(TyperCommand(name, help=summary, rich_markup_mode=None))
    return command


class Contents(TyperGroup):
    """Its commands are only names with a line of help, until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, named, rest = super().resolve_command(ctx, args)
        return name, named and verb_command(str(name)), rest


def verb_command(name: str) -> Any:
    module = f"{name}_" if keyword.iskeyword(name) else name  # `import` cannot be the name of a module
    command = get_command(importlib.import_module(f"runyard.cli.commands.{module}").app)
    command.name = name
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        from runyard.cli.commands.version import version

        version()
        raise typer.Exit


def _runyard(
    home: Annotated[
        Optional[str],
        typer.Option(metavar="FOLDER", help="The yard's home folder (default: RUNYARD_HOME, else ~/.runyard)."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Train on your own machines: run a script, watch it, keep what it made.

    RUN is the id of a run, the beginning or the end of one, or @last for the newest.
    """
    if home:
        # every part of this command, and the yard that it may start, see the same folder
        os.environ["RUNYARD_HOME"] = str(Path(home).expanduser().absolute())


def _wrong_usage(error: Any) -> int:
    path = error.ctx.command_path if error.ctx else "runyard"
    message = error.format_message()
    if error.ctx and type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help())
        return 0
    near = ""
    if type(error).__name__ == "NoSuchOption":
        message, near = f"there is no option {error.option_name}", _nearest_option(error)
    print(f"error: {_as_sentence(message)}\n\nhint: {near}{path} --help shows how it is used", file=sys.stderr)
    return 2


def _nearest_option(error: Any) -> str:
    """Typer compares with the dashes, by which any two options are alike: --conda is no guess for --json."""
    import difflib

    known = [name for parameter in error.ctx.command.params for name in parameter.opts] if error.ctx else []
    bare = {name.lstrip("-"): name for name in known if name.startswith("--")}
    close = difflib.get_close_matches(error.option_name.lstrip("-"), list(bare), n=1)
    return f"did you mean {bare[close[0]]!r}? " if close else ""


def _as_sentence(message: str) -> str:
    text = message.rstrip(".")
    return text[:1].lower() + text[1:]
