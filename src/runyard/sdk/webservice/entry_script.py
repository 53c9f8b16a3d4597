"""Checks of a scoring script before it is uploaded, and its upload."""

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
    """Raise WebserviceException if the script is not valid Python or lacks ``init()`` or ``run()``."""
    try:
        tree = ast.parse(script.read_bytes(), filename=str(script))
    except SyntaxError as error:
        raise WebserviceException(
            f"the scoring script {script.name} is not valid Python: {error.msg} (line {error.lineno})"
        ) from error
    except (OSError, ValueError) as error:
        raise WebserviceException(f"cannot read the scoring script {script}: {error}") from error
    names = _top_level_names(tree)
    missing = [name for name in ("init", "run") if name not in names]
    if missing and "*" not in names:  # the names of a star import are unknown before it runs
        raise WebserviceException(
            f"the scoring script {script.name} has no {' and no '.join(f'{name}()' for name in missing)}",
            hint="a service calls init() once, then run(data) for each request",
        )


def take_snapshot_of(
    connection: Connection, entry_script: str, source_directory: str | None, extra_files: Sequence[str] = ()
) -> tuple[str, str]:
    """Upload the code; return the id of the snapshot and the script's path in it.

    Without a ``source_directory``, only the script and the ``extra_files`` are uploaded.
    """
    from runyard.sdk.training.submit import take_snapshot

    if source_directory is not None:
        folder = Path(source_directory).resolve()
        script = (folder / entry_script).resolve()
        check_content(script)
        return take_snapshot(connection, folder), script.relative_to(folder).as_posix()
    script = Path(entry_script).resolve()
    check_content(script)
    with tempfile.TemporaryDirectory(prefix="runyard-script-") as folder_name:
        folder = Path(folder_name)
        shutil.copyfile(script, folder / script.name)
        for extra_file in extra_files:
            source = Path(extra_file)
            if not source.exists():
                raise WebserviceException(f"{extra_file!r}, which the scoring script needs, does not exist")
            target = folder / (extra_file if not source.is_absolute() and ".." not in source.parts else source.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)
        return take_snapshot(connection, folder), script.name


def check_exists(entry_script: object, source_directory: object, parameter: str = "entry_script") -> None:
    """Raise WebserviceException if the script does not exist."""
    if not isinstance(entry_script, str) or not entry_script:
        raise WebserviceException(f"{parameter} must be the path of a Python file, got {entry_script!r}")
    base = Path()
    if source_directory is not None:
        base = Path(str(source_directory))
        if not base.is_dir():
            raise WebserviceException(f"source_directory {str(source_directory)!r} is not a folder")
        if base.resolve() not in (base / entry_script).resolve().parents:
            raise WebserviceException(f"{parameter} {entry_script!r} is not below {base.resolve()}")
    if not (base / entry_script).is_file():
        raise WebserviceException(f"{parameter} {entry_script!r} does not exist", hint=f"looked in {base.resolve()}")


def _top_level_names(tree: ast.Module) -> set[str]:
    """Return the names that the script binds at its top level, also inside an ``if`` or a ``try``."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            pending.extend(ast.iter_child_nodes(node))
    return names
