"""Writes docs/reference/cli.md from the command line's own words: `python scripts/cli_reference.py`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from runyard.cli.job_file import KEYS
from runyard.cli.lazy_group import make_group, load_command
from runyard.cli.main import COMMANDS
from runyard.cli.sweep_syntax import SWEEP_KEYS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

_HEAD = """\
# The command line

This page is written by `python scripts/cli_reference.py` from the commands themselves.

`runyard --help` lists the verbs, `runyard VERB --help` describes one. Data goes to stdout, everything else to stderr,
so that the output of every command can be piped; listings and `show` take `--json`. An error is two lines, what is
wrong and what to do, and the exit code is 1 (2 for a wrong command line, 130 after Ctrl-C). `runyard run` exits as its
script did, with 128 and the signal's number when a signal ended it.

JSON has no NaN and no infinity: with `--json` they are the texts `NaN`, `Infinity` and `-Infinity`, everywhere.

RUN is the id of a run, the beginning of an id or of a part of it, the end of one, or `@last` for the newest.

`runyard --install-completion` teaches bash, zsh or fish to complete verbs, options, runs and names of files.
"""

_JOB = """\
### The job file

Paths are relative to the file. Only `script` must be there; a key that is not known is an error.

| key | takes |
|---|---|
"""

_SWEEP = """\
### The section `sweep` of a job file

| key | takes |
|---|---|
"""


def page() -> str:
    parts = [_HEAD, "## Before the verb\n\n" + _parameters(make_group(COMMANDS))]
    for name in COMMANDS:
        command = load_command(name)
        parts.append(_section(f"runyard {name}", command, 2))
        parts += [_section(f"runyard {name} {sub}", inner, 3) for sub, inner in _inner(command)]
        if name == "submit":
            parts.append(_JOB + "".join(f"| `{key}` | {takes} |\n" for key, takes in KEYS.items()))
        if name == "sweep":
            parts.append(_SWEEP + "".join(f"| `{key}` | {takes} |\n" for key, takes in SWEEP_KEYS.items()))
    return "\n".join(parts)


def _inner(command: Any) -> list[tuple[str, Any]]:
    return list(getattr(command, "commands", {}).items())


def _section(title: str, command: Any, depth: int) -> str:
    text, _, sample = inspect.cleandoc(command.help or "").partition("\b\n")
    sample = f"```yaml\n{sample.rstrip()}\n```\n\n" if sample else ""
    usage = "" if _inner(command) else f"    {title} {_usage(command)}\n\n"
    return f"{'#' * depth} {title}\n\n{usage}{text.strip()}\n\n{sample}{_parameters(command)}".rstrip() + "\n"


def _usage(command: Any) -> str:
    words = ["[OPTIONS]"]
    for argument in _of_kind(command, "argument"):
        name = _name(argument)
        words.append((name if argument.required else f"[{name}]") + ("..." if argument.nargs == -1 else ""))
    return " ".join(words)


def _parameters(command: Any) -> str:
    rows = [f"| `{_name(argument)}` | {argument.help} |\n" for argument in _of_kind(command, "argument")]
    for option in _of_kind(command, "option"):
        if "--help" not in option.opts and "completion" not in option.opts[0]:  # Typer's own, in Typer's words
            names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
            rows.append(f"| {names}{_value(option)} | {option.help} |\n")
    return "| | |\n|---|---|\n" + "".join(rows) if rows else ""


def _of_kind(command: Any, kind: str) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == kind]


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _value(option: Any) -> str:
    return "" if option.is_flag or not option.metavar else f" `{option.metavar}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
