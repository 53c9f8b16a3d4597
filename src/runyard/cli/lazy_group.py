"""The top-level command group. Modules of commands are imported when a command is invoked."""

from __future__ import annotations

import difflib
import importlib
import keyword
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command


def run_command(commands: dict[str, str], arguments: list[str]) -> int:
    try:
        result = make_group(commands).main(arguments, prog_name="runyard", standalone_mode=False)
    except TyperException as error:
        return _report_error(error)
    except typer.Abort:
        print("aborted; nothing was changed", file=sys.stderr)
        return 1
    if result == 130:  # Typer's exit code for Ctrl-C
        from runyard.cli.follow import ReportedExit

        if not isinstance(result, ReportedExit):
            print("interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def make_group(commands: dict[str, str]) -> LazyGroup:
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, add_completion=True, no_args_is_help=True)
    app.callback()(_runyard)
    group = get_command(app)
    assert isinstance(group, LazyGroup)
    for name, summary in commands.items():
        group.add_command(TyperCommand(name, help=summary, rich_markup_mode=None))
    return group


class LazyGroup(TyperGroup):
    """Contains placeholders with a summary, which is enough for help and completion; imports the invoked command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load_command(str(name)), rest


def load_command(name: str) -> Any:
    module = f"{name}_" if keyword.iskeyword(name) else name  # a module cannot be named `import`
    command = get_command(importlib.import_module(f"runyard.cli.commands.{module}").app)
    command.name = name
    return command


def _print_version(is_set: bool) -> None:
    if is_set:
        from runyard.cli.commands.version import version

        version()
        raise typer.Exit


def _runyard(
    home: Annotated[
        Optional[str],
        typer.Option(metavar="FOLDER", help="The yard's home folder (default: RUNYARD_HOME, or ~/.runyard)."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Train on your own machines: run a script, watch it, keep its results.

    RUN is a run id, its beginning or end, or @last for the newest run.
    """
    if home:
        # also for the yard that this command may start
        os.environ["RUNYARD_HOME"] = str(Path(home).expanduser().absolute())


def _report_error(error: TyperException) -> int:
    """Usage errors, which have a context and exit code 2, get a hint; a group without arguments prints its help."""
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help())
        return 0
    message, hint = error.format_message().rstrip("."), ""
    if error.exit_code == 2:
        if hasattr(error, "option_name"):
            message, hint = f"no such option: {error.option_name}", _similar_option(context, error.option_name)
        hint = f"\n\nhint: {hint}see {context.command_path if context else 'runyard'} --help"
    print(f"error: {message[:1].lower()}{message[1:]}{hint}", file=sys.stderr)
    return error.exit_code


def _similar_option(context: Any, option: str) -> str:
    """Typer compares names with their dashes, which makes any two options similar: --json is not close to --conda."""
    options = [name for parameter in context.command.params for name in parameter.opts] if context else []
    names = {name.lstrip("-"): name for name in options if name.startswith("--")}
    close = difflib.get_close_matches(option.lstrip("-"), list(names), n=1)
    return f"did you mean {names[close[0]]!r}? " if close else ""
