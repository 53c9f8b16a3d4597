"""Scripts and notebooks as pieces of Python. Nothing is run."""

from __future__ import annotations

import io
import json
import os
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.migration.magics import plain_python

_SUFFIXES = (".py", ".ipynb")
_NOT_OURS = {"__pycache__", "node_modules", "site-packages", "env", "venv"}


@dataclass(frozen=True)
class Piece:
    """A file, or a cell. What a cell writes to a file is a piece of its own, with names of its own."""

    text: str
    cell: int | None = None
    first_line: int = 1
    commands: tuple[tuple[int, str], ...] = ()  # of a shell, with their lines
    apart: bool = False


@dataclass(frozen=True)
class Source:
    path: Path
    pieces: tuple[Piece, ...]
    problem: str = ""  # why there are none

    @property
    def kind(self) -> str:
        return "notebook" if self.path.suffix == ".ipynb" else "script"


def sources(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise UserErrorException(f"there is no {str(path)!r}", hint="give a script, a notebook or a folder")
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise UserErrorException(
            f"{str(path)!r} is neither a script nor a notebook", hint="give a .py, an .ipynb or a folder with such"
        )
    found = [path] if path.is_file() else list(_below(path))
    if not found:
        raise UserErrorException(f"there are no scripts or notebooks in {str(path)!r}", hint="give another folder")
    for file in found:
        yield _read(file)


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        # a virtual environment has any name, and thousands of files that are nobody's to change
        folders[:] = sorted(
            name
            for name in folders
            if name not in _NOT_OURS and name[0] != "." and not Path(place, name, "pyvenv.cfg").exists()
        )
        yield from (Path(place, name) for name in sorted(names) if name.endswith(_SUFFIXES) and name[0] != ".")


def _read(path: Path) -> Source:
    try:
        content = path.read_bytes()
        pieces = tuple(_cells(content)) if path.suffix == ".ipynb" else (Piece(_decoded(content)),)
    except OSError as error:
        return Source(path, (), f"cannot be read: {error.strerror}")
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = "not a notebook" if path.suffix == ".ipynb" else "not a text that Python reads"
        return Source(path, (), f"{what}: {error}")
    return Source(path, pieces)


def _decoded(content: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _cells(content: bytes) -> Iterator[Piece]:
    book = json.loads(content.decode("utf-8-sig"))
    # the third version of the format had its cells in worksheets, and their text as `input`
    cells = book["cells"] if "cells" in book else [c for sheet in book["worksheets"] for c in sheet["cells"]]
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] != "code":
            continue
        text = cell["source"] if "source" in cell else cell["input"]
        told = plain_python(text if isinstance(text, str) else "".join(text))
        yield Piece(told.text, number, commands=told.commands)
        if told.written:
            yield Piece(told.written, number, first_line=2, apart=True)
