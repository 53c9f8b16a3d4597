"""Base for all commands: `app = new_app()`, then `@app.command(cls=Command)`."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

_TYPE_OF_ARGUMENT = re.compile(r"(?<=\S) <[a-z\[\]]+>(?= |$)", re.MULTILINE)


def new_app(**settings: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, add_completion=False, **settings)


class Command(TyperCommand):
    """Conventional help: `SCRIPT [ARGUMENT]...`, without braces and Python type names."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def get_help(self, ctx: Any) -> str:
        return _TYPE_OF_ARGUMENT.sub(lambda match: " " * len(match[0]), super().get_help(ctx))
