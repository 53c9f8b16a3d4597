"""Make a copy of the package in which every message is in upper case.

A message is a string literal with at least two words in lower case. Literals that code compares or searches for keep
their case, so that code which recognizes a message by its wording no longer finds it, and behaves differently.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

PROSE = re.compile(r"[a-z]{2,}[,;:]? [a-z]{2,}")
PROGRAM = re.compile(r"^\s*(#!|import |from \w+ import |def |set -)", re.MULTILINE)
STR_METHODS = frozenset(
    [
        "startswith",
        "endswith",
        "find",
        "index",
        "replace",
        "split",
        "rsplit",
        "partition",
        "rpartition",
        "removeprefix",
        "removesuffix",
        "count",
        "strip",
    ]
)
REGEX = frozenset(["compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "split"])
# programs and formats of others, which are not messages: SQL, shell, C++ patches, HTML, generated code
EXCLUDED = (
    "spec/",
    "store/",
    "run_table/",
    "environments/horovod/",
    "compute/slurm/script.py",
    "compute/ssh/bootstrap.py",
    "compute/ssh/openssh.py",
    "environments/uv_errors.py",
    "scoring/info_endpoints.py",
    "migration/",
    "sdk/azureml/",
    "sdk/notebook/",
    "cli/",
    "testing/",
)


def copy_in_upper_case(package: Path, target: Path) -> int:
    """Write the copy below ``target`` and return the number of messages that were changed."""
    shutil.copytree(package, target / package.name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    changed = 0
    for path in (target / package.name).rglob("*.py"):
        name = path.relative_to(target / package.name).as_posix()
        if not name.startswith(EXCLUDED):
            transformer = _UpperCase()
            tree = transformer.visit(ast.parse(path.read_text(encoding="utf-8")))
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
            changed += transformer.changed
    return changed


class _UpperCase(ast.NodeTransformer):
    def __init__(self) -> None:
        self.changed = 0

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and _is_message(node.value):
            self.changed += 1
            return ast.copy_location(ast.Constant(_upper(node.value)), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
        if any(_is_message(str(text)) for text in texts):
            self.changed += 1
            node.values = [
                ast.copy_location(ast.Constant(_upper(str(part.value))), part)
                if isinstance(part, ast.Constant)
                else part
                for part in node.values
            ]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any(isinstance(base, ast.Name) and base.id.endswith("Enum") for base in node.bases):
            return node  # its values are stored and compared
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute):
            of_module = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if node.func.attr in STR_METHODS or (of_module and node.func.attr in REGEX):
                return node
        self.generic_visit(node)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.values = [self.visit(value) for value in node.values]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return node  # a docstring
        self.generic_visit(node)
        return node


def _is_message(text: str) -> bool:
    return bool(PROSE.search(text)) and not PROGRAM.search(text)


def _upper(text: str) -> str:
    """Upper case, except for names in quotes, paths and placeholders, which are data."""
    return re.sub(r"(\{[^}]*\}|%\w|`[^`]*`|'[^']*'|\S*[/=_.]\S+|--[\w-]+|[^{%`'/=_.-]+?)", _upper_piece, text)


def _upper_piece(match: re.Match[str]) -> str:
    piece = match[0]
    return piece if re.search(r"[{%`'/=_]|\.\w|^--", piece) else piece.upper()
