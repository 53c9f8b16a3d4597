"""The scoring script before it travels: that it is there, is Python, and has what a service calls."""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import WebserviceException

if TYPE_CHECKING:
    from runyard.client.connection import Connection


def check_content(script: Path) -> None:
    """WebserviceException, before anything is sent, for a script that no service could use."""
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except SyntaxError as error:
        raise WebserviceException(
            f"the scoring script {script.name} is not valid Python: {error.msg} (line {error.lineno})"
        ) from error
    except (OSError, ValueError) as error:
        raise WebserviceException(f"the scoring script {script} cannot be read: {error}") from error
    names = _names(tree)
    absent = [name for name in ("init", "run") if name not in names]
    if absent and "*" not in names:  # what is imported with a star is known when it runs
        raise WebserviceException(
            f"the scoring script {script.name} has no {' and no '.join(f'{name}()' for name in absent)}",
            hint="a service calls init() once, then run(data) for each request",
        )


def take_snapshot_of(
    connection: Connection, entry_script: str, source_directory: str | None, beside: Sequence[str] = ()
) -> tuple[str, str]:
    """The id of the code in the yard, and the script's path in it.

    A script without a ``source_directory`` travels alone, with what was named to lie beside it.
    """
    from runyard.sdk.training.submit import take_snapshot

    if source_directory is not None:
        folder = Path(source_directory).resolve()
        script = (folder / entry_script).resolve()
        check_content(script)
        return take_snapshot(connection, folder), script.relative_to(folder).as_posix()
    script = Path(entry_script).resolve()
    check_content(script)
    with tempfile.TemporaryDirectory(prefix="runyard-script-") as made:
        shutil.copyfile(script, Path(made) / script.name)
        for other in beside:
            source = Path(other)
            if not source.exists():
                raise WebserviceException(f"{other!r}, which the scoring script needs, is not there")
            target = Path(made) / (other if not source.is_absolute() and ".." not in source.parts else source.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)
        return take_snapshot(connection, Path(made)), script.name


def check_exists(entry_script: object, source_directory: object, what: str = "entry_script") -> str:
    """The path as it was given, when a script is there. Raises WebserviceException."""
    if not isinstance(entry_script, str) or not entry_script:
        raise WebserviceException(f"{what} takes the path of a Python file, not {entry_script!r}")
    base = Path()
    if source_directory is not None:
        base = Path(str(source_directory))
        if not base.is_dir():
            raise WebserviceException(f"source_directory {str(source_directory)!r} is not a folder")
        if base.resolve() not in (base / entry_script).resolve().parents:
            raise WebserviceException(f"{what} {entry_script!r} is not below {base.resolve()}")
    place = base / entry_script
    if not place.is_file():
        raise WebserviceException(f"{what} {entry_script!r} is not there", hint=f"looked in {base.resolve()}")
    return entry_script


def _names(tree: ast.Module) -> set[str]:
    """Of the functions and other values that the script has at its top, also within an ``if`` or a ``try``."""
    names: set[str] = set()
    ahead: list[ast.AST] = list(tree.body)
    while ahead:
        node = ahead.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            ahead.extend(ast.iter_child_nodes(node))
    return names
