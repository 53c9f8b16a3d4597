"""Reads scripts and notebooks as pieces of Python code, without executing them."""

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
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "env", "venv"}


@dataclass(frozen=True)
class Piece:
    """A script or a notebook cell. A file that a cell writes is a standalone piece with its own variables."""

    text: str
    cell: int | None = None
    first_line: int = 1
    commands: tuple[tuple[int, str], ...] = ()  # shell commands with their line numbers
    standalone: bool = False


@dataclass(frozen=True)
class Source:
    path: Path
    pieces: tuple[Piece, ...]
    problem: str = ""  # the reason, if there are none

    @property
    def kind(self) -> str:
        return "notebook" if self.path.suffix == ".ipynb" else "script"


def sources(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise UserErrorException(f"{str(path)!r} does not exist", hint="pass a script, a notebook or a folder")
    if path.is_file() and path.suffix not in _SUFFIXES:
        raise UserErrorException(
            f"{str(path)!r} is neither a script nor a notebook", hint="pass a .py file, an .ipynb file or a folder"
        )
    files = [path] if path.is_file() else list(_walk(path))
    if not files:
        raise UserErrorException(f"no scripts or notebooks in {str(path)!r}", hint="pass another folder")
    for file in files:
        yield _read(file)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        # a virtual environment may have any name, and contains thousands of files
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED_FOLDERS and name[0] != "." and not Path(parent, name, "pyvenv.cfg").exists()
        )
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(_SUFFIXES) and name[0] != ".")


def _read(path: Path) -> Source:
    try:
        content = path.read_bytes()
        pieces = tuple(_cells(content)) if path.suffix == ".ipynb" else (Piece(_decode(content)),)
    except OSError as error:
        return Source(path, (), f"cannot be read: {error.strerror}")
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = "not a notebook" if path.suffix == ".ipynb" else "not Python source text"
        return Source(path, (), f"{reason}: {error}")
    return Source(path, pieces)


def _decode(content: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _cells(content: bytes) -> Iterator[Piece]:
    book = json.loads(content.decode("utf-8-sig"))
    # version 3 of the format has cells in worksheets, and their text as `input`
    cells = book["cells"] if "cells" in book else [c for sheet in book["worksheets"] for c in sheet["cells"]]
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] != "code":
            continue
        text = cell["source"] if "source" in cell else cell["input"]
        code = plain_python(text if isinstance(text, str) else "".join(text))
        yield Piece(code.text, number, commands=code.commands)
        if code.written_script:
            yield Piece(code.written_script, number, first_line=2, standalone=True)
