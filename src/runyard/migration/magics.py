"""Removes IPython syntax from a cell. Every line of Python keeps its line number."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_MAGIC = re.compile(r"(\s*)(?:([\w.,\s]+?)=\s*)?([!%])(.*)")
_HELP = re.compile(r"\s*\?{1,2}[\w.]+\s*|\s*[%\w.*]+\?{1,2}\s*")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "python", "python3"}  # the rest of such a cell is Python
_WRITERS = {"writefile", "file"}
_SHELLS = {"bash", "sh", "script", "cmd", "system", "!"}
_DATABRICKS = re.compile(r"%(sh|fs|sql|scala|r|md)\s*")  # a single `%`, although the rest of the cell is not Python
_UNMARKED_COMMAND = re.compile(r"(ls|cat|cd|cp|mkdir|mv|rm|rmdir|pip|conda)\s+[\w./~*-][^=]*")  # IPython's automagic


@dataclass(frozen=True)
class CellText:
    text: str  # the Python code
    commands: tuple[tuple[int, str], ...] = ()  # shell commands with their line numbers
    written_script: str = ""  # a Python file that the cell writes


def plain_python(cell: str) -> CellText:
    lines = cell.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    lines = [line[len(indent) :] if line.startswith(indent) else line for line in lines]  # as IPython does
    if _DATABRICKS.fullmatch(lines[first]):
        lines[first] = f"%{lines[first]}"
    if not lines[first].startswith("%%"):
        return CellText("\n".join(lines)) if is_python("\n".join(lines)) else _without_line_magics(lines)
    magic, _, rest = lines[first][2:].partition(" ")
    below = lines[first + 1 :]
    if magic in _PYTHON_CELLS:
        return _without_line_magics([*[""] * (first + 1), *below])
    if magic in _WRITERS:
        name = rest.split()[-1] if rest.split() else ""
        return CellText("", written_script="\n" * first + "\n".join(below) if name.endswith(".py") else "")
    if magic.strip() in _SHELLS:
        return CellText("", commands=tuple((first + 2 + number, line) for number, line in enumerate(below)))
    return CellText("")  # %%html, %%javascript, %%sql: another language


def is_python(text: str) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about escape sequences do not matter here
        tree = compile(text, "<read>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    return tree


def _without_line_magics(lines: list[str]) -> CellText:
    python: list[str] = []
    commands: list[tuple[int, str]] = []
    is_continued = in_string = False
    for number, line in enumerate(lines, 1):
        match = None if in_string else _MAGIC.fullmatch(line)
        if is_continued:
            commands[-1] = (commands[-1][0], f"{commands[-1][1]} {line.strip()}")
            python.append("")
            is_continued = line.endswith("\\")
        elif match and _is_magic(match):
            indent, target, kind, rest = match.groups()
            commands.append((number, rest.strip() if kind == "!" else _shell_command(rest)))
            # replaced by a statement of the same indentation, so that the body of an `if` is not empty
            python.append(f"{indent}{target.strip()} = None" if target else f"{indent}pass")
            is_continued = line.endswith("\\")
        elif not in_string and _HELP.fullmatch(line):
            python.append("")
        elif not in_string and _UNMARKED_COMMAND.fullmatch(line):
            commands.append((number, line))
            python.append("")
        else:
            python.append(line)
            in_string = _ends_in_string(line, in_string)
    return CellText("\n".join(python), tuple((line, text.replace("\\", "")) for line, text in commands if text))


def _is_magic(match: re.Match[str]) -> bool:
    """`x %y` on a continuation line is the modulo operator; `%` directly before a word is a magic."""
    return match[3] == "!" or bool(re.match(r"[%\w]", match[4]))


def _shell_command(magic: str) -> str:
    """Return the command of a magic such as `%pip install x`; empty for others, such as `%matplotlib inline`."""
    name = magic.split(maxsplit=1)[0].strip("%") if magic.split() else ""
    return magic.strip("% ") if name in ("pip", "conda", "sx", "sc", "system") else ""


def _ends_in_string(line: str, in_string: bool) -> bool:
    """True if a triple-quoted string is open after this line; it may contain text that looks like a magic."""
    quotes = len(re.findall(r'"""|\'\'\'', line.split("#")[0] if not in_string else line))
    return in_string if quotes % 2 == 0 else not in_string
