"""Reads a project that was written for the SDK v1 and says what of it runs here. Nothing of it is run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runyard.migration.behavior_changes import never_submitted, surprises
from runyard.migration.magics import parse
from runyard.migration.names import Names
from runyard.migration.report import ERROR, FileReport, Finding, Report
from runyard.migration.script_rules import ScriptRules, commands
from runyard.migration.sdk_rules import SdkRules
from runyard.migration.sdk_surface import surface
from runyard.migration.sources import Piece, Source, sources


def examine(path: Path) -> Report:
    root = path if path.is_dir() else path.parent
    return Report(str(path), tuple(_examined(source, root) for source in sources(path)))


def _examined(source: Source, root: Path) -> FileReport:
    name = Path(os.path.relpath(source.path, root)).as_posix()
    if source.problem:
        return FileReport(name, source.kind, (Finding("syntax", ERROR, "", source.problem),), ())
    findings: list[Finding] = []
    used: set[str] = set()
    together = [piece for piece in source.pieces if not piece.apart]
    for group in (together, *([piece] for piece in source.pieces if piece.apart)):
        findings += _of_group(group, used)
    ordered = sorted(set(findings), key=lambda f: (f.cell or 0, f.line, f.rule, f.name))
    return FileReport(name, source.kind, tuple(ordered), tuple(sorted(used)))


def _of_group(pieces: list[Piece], used: set[str]) -> Iterator[Finding]:
    """Pieces that share their names."""
    parsed: list[tuple[Piece, ast.Module]] = []
    for piece in pieces:
        yield from (_at(piece, finding) for finding in commands(piece.commands))
        tree = _parsed(piece.text)
        if isinstance(tree, Finding):
            yield _at(piece, tree)
        else:
            parsed.append((piece, tree))
    names = Names(surface(), [tree for _, tree in parsed])
    of_sdk, of_scripts = SdkRules(surface(), names), ScriptRules(names)
    for piece, tree in parsed:
        for finding in (*of_sdk.findings(tree), *of_scripts.findings(tree), *surprises(tree, names)):
            yield _at(piece, finding)
    yield from never_submitted([(piece.cell, piece.first_line - 1, tree) for piece, tree in parsed], names, surface())
    used |= of_sdk.used


def _at(piece: Piece, finding: Finding) -> Finding:
    return replace(finding, line=finding.line + piece.first_line - 1, cell=piece.cell)


def _parsed(text: str) -> ast.Module | Finding:
    try:
        return parse(text)
    except SyntaxError as error:
        what = error.msg or "not Python"
        remedy = "this is Python 2: 2to3, or by hand" if re.search(r"call to '(print|exec)'", what) else ""
        return Finding("syntax", ERROR, "", what, remedy, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("syntax", ERROR, "", f"Python cannot read it: {error}")
