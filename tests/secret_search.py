"""Searches for a secret wherever it must not be: files, command lines, responses of the yard."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

from runyard.client.connection import Connection


def files_with(secret: str, *folders: Path) -> list[Path]:
    """Files below the folders that contain the secret, in clear or in base64."""
    forms = [secret.encode(), base64.b64encode(secret.encode())]
    return [path for folder in folders for path, content in _contents(folder) if any(form in content for form in forms)]


def command_lines_with(secret: str) -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if secret.encode() in line and process.name != str(os.getpid()):
            lines.append(line.decode("utf-8", "replace"))
    return lines


def responses_with(secret: str, home: Path, run_id: str) -> list[str]:
    """Paths of the API about a run whose response contains the secret."""
    connection = Connection(home)
    paths = [f"/api/runs/{run_id}{path}" for path in ("", "/plan", "/timeline", "/logs", "/summary")]
    paths += ["/api/runs", "/api/runs/table", "/api/secrets"]
    return [path for path in paths if secret in _response(connection, path)]


def _response(connection: Connection, path: str) -> str:
    return json.dumps(connection.get(path), ensure_ascii=False)


def _contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "kit" not in path.relative_to(folder).parts[:1]:
            try:
                yield path, path.read_bytes()
            except OSError:
                continue
