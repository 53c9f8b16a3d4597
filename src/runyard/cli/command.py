"""How every verb is declared: `app = new_verb()`, then `@app.command(cls=Verb)`."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

_TYPE_OF_ARGUMENT = re.compile(r"(?<=\S) <[a-z\[\]]+>(?= |$)", re.MULTILINE)


def new_verb(**settings: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, add_completion=False, **settings)


class Verb(TyperCommand):
    """Help as people know it: `SCRIPT [ARGUMENT]...`, without braces and without the names of Python types."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def get_help(self, ctx: Any) -> str:
        return _TYPE_OF_ARGUMENT.sub(lambda found: " " * len(found[0]), super().get_help(ctx))
