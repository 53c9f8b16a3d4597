"""What IPython adds to Python, taken out of a cell: every line of Python stays on the line where it is."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_MAGIC = re.compile(r"(\s*)(?:([\w.,\s]+?)=\s*)?([!%])(.*)")
_HELP = re.compile(r"\s*\?{1,2}[\w.]+\s*|\s*[%\w.*]+\?{1,2}\s*")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "python", "python3"}  # what is below such a line is Python
_WRITERS = {"writefile", "file"}
_SHELLS = {"bash", "sh", "script", "cmd", "system", "!"}
_DATABRICKS = re.compile(r"%(sh|fs|sql|scala|r|md)\s*")  # one `%`, and the rest of the cell is not Python
_WITHOUT_A_MARK = re.compile(r"(ls|cat|cd|cp|mkdir|mv|rm|rmdir|pip|conda)\s+[\w./~*-][^=]*")  # IPython guesses these


@dataclass(frozen=True)
class Told:
    text: str
    commands: tuple[tuple[int, str], ...] = ()
    written: str = ""


def plain_python(cell: str) -> Told:
    lines = cell.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    lines = [line[len(indent) :] if line.startswith(indent) else line for line in lines]  # as IPython does
    if _DATABRICKS.fullmatch(lines[first]):
        lines[first] = f"%{lines[first]}"
    if not lines[first].startswith("%%"):
        return Told("\n".join(lines)) if is_python("\n".join(lines)) else _without_line_magics(lines)
    magic, _, rest = lines[first][2:].partition(" ")
    below = lines[first + 1 :]
    if magic in _PYTHON_CELLS:
        return _without_line_magics([*[""] * (first + 1), *below])
    if magic in _WRITERS:
        name = rest.split()[-1] if rest.split() else ""
        return Told("", written="\n" * first + "\n".join(below) if name.endswith(".py") else "")
    if magic.strip() in _SHELLS:
        return Told("", commands=tuple((first + 2 + number, line) for number, line in enumerate(below)))
    return Told("")  # %%html, %%javascript, %%sql: another language


def is_python(text: str) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old escapes in texts: nobody here is going to run them
        tree = compile(text, "<read>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    return tree


def _without_line_magics(lines: list[str]) -> Told:
    kept: list[str] = []
    commands: list[tuple[int, str]] = []
    continues = inside = False
    for number, line in enumerate(lines, 1):
        found = None if inside else _MAGIC.fullmatch(line)
        if continues:
            commands[-1] = (commands[-1][0], f"{commands[-1][1]} {line.strip()}")
            kept.append("")
            continues = line.endswith("\\")
        elif found and _is_magic(found):
            indent, target, kind, rest = found.groups()
            commands.append((number, rest.strip() if kind == "!" else _shell_of(rest)))
            # in place of it something of the same depth: a body that was one command stays a body
            kept.append(f"{indent}{target.strip()} = None" if target else f"{indent}pass")
            continues = line.endswith("\\")
        elif not inside and _HELP.fullmatch(line):
            kept.append("")
        elif not inside and _WITHOUT_A_MARK.fullmatch(line):
            commands.append((number, line))
            kept.append("")
        else:
            kept.append(line)
            inside = _in_a_string(line, inside)
    return Told("\n".join(kept), tuple((line, text.replace("\\", "")) for line, text in commands if text))


def _is_magic(found: re.Match[str]) -> bool:
    """`x %y` at the beginning of a continued line is a remainder; `%` directly before a word is a magic."""
    return found[3] == "!" or bool(re.match(r"[%\w]", found[4]))


def _shell_of(magic: str) -> str:
    """`%pip install x` is a command, `%matplotlib inline` none."""
    name = magic.split(maxsplit=1)[0].strip("%") if magic.split() else ""
    return magic.strip("% ") if name in ("pip", "conda", "sx", "sc", "system") else ""


def _in_a_string(line: str, inside: bool) -> bool:
    """Whether a text of three quotes is open after this line: what looks like a magic in it is none."""
    marks = len(re.findall(r'"""|\'\'\'', line.split("#")[0] if not inside else line))
    return inside if marks % 2 == 0 else not inside
