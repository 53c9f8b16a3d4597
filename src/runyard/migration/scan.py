"""Scans a project for the SDK v1 and reports which files run unchanged. No code of it is executed."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from runyard.migration.behavior_changes import find_behavior_changes, find_unsubmitted_estimators
from runyard.migration.magics import parse
from runyard.migration.names import Names
from runyard.migration.report import ERROR, FileReport, Finding, Report
from runyard.migration.script_rules import ScriptRules, check_commands
from runyard.migration.sdk_rules import SdkRules
from runyard.migration.sdk_surface import surface
from runyard.migration.sources import Piece, Source, sources


def scan(path: Path) -> Report:
    """Scan a script, a notebook, or all scripts and notebooks of a folder."""
    root = path if path.is_dir() else path.parent
    return Report(str(path), tuple(_scan_file(source, root) for source in sources(path)))


def _scan_file(source: Source, root: Path) -> FileReport:
    name = Path(os.path.relpath(source.path, root)).as_posix()
    if source.problem:
        return FileReport(name, source.kind, (Finding("syntax", ERROR, "", source.problem),), ())
    findings: list[Finding] = []
    used: set[str] = set()
    shared = [piece for piece in source.pieces if not piece.standalone]
    for group in (shared, *([piece] for piece in source.pieces if piece.standalone)):
        findings += _scan_group(group, used)
    ordered = sorted(set(findings), key=lambda f: (f.cell or 0, f.line, f.rule, f.name))
    return FileReport(name, source.kind, tuple(ordered), tuple(sorted(used)))


def _scan_group(pieces: list[Piece], used: set[str]) -> Iterator[Finding]:
    """Scan pieces that share their variables."""
    parsed: list[tuple[Piece, ast.Module]] = []
    for piece in pieces:
        yield from (_located(piece, finding) for finding in check_commands(piece.commands))
        tree = _parse(piece.text)
        if isinstance(tree, Finding):
            yield _located(piece, tree)
        else:
            parsed.append((piece, tree))
    names = Names(surface(), [tree for _, tree in parsed])
    sdk_rules, script_rules = SdkRules(surface(), names), ScriptRules(names)
    for piece, tree in parsed:
        for finding in (*sdk_rules.findings(tree), *script_rules.findings(tree), *find_behavior_changes(tree, names)):
            yield _located(piece, finding)
    trees = [(piece.cell, piece.first_line - 1, tree) for piece, tree in parsed]
    yield from find_unsubmitted_estimators(trees, names, surface())
    used |= sdk_rules.used


def _located(piece: Piece, finding: Finding) -> Finding:
    return replace(finding, line=finding.line + piece.first_line - 1, cell=piece.cell)


def _parse(text: str) -> ast.Module | Finding:
    try:
        return parse(text)
    except SyntaxError as error:
        message = error.msg or "not Python"
        remedy = "this is Python 2: convert it with 2to3" if re.search(r"call to '(print|exec)'", message) else ""
        return Finding("syntax", ERROR, "", message, remedy, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("syntax", ERROR, "", f"cannot parse it: {error}")
