"""Runs and their metrics as tables for other programs. Points are streamed, never all in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.exchange.tables import FORMATS, Writer
from runyard.wire.points import WirePoints, decode_points

_POINTS_AT_ONCE = 200_000
_PAGE = 1000


@dataclass(frozen=True)
class Choice:
    """Which runs: one, those of an experiment, or with neither all."""

    run_id: str | None = None
    experiment: str | None = None


@dataclass
class Exported:
    paths: list[Path]
    runs: int = 0
    points: int = 0
    files: int = 0
    left_out: int = 0  # tables, images and the like, which only JSON has


def rows_of(connection: Connection, choice: Choice) -> list[dict[str, Any]]:
    if choice.run_id is not None:
        found = _pages(connection, query=f'"{choice.run_id}"')
        return [row for row in found if row["run_id"] == choice.run_id]
    return list(_pages(connection, experiment=choice.experiment))


def export(
    connection: Connection,
    rows: list[dict[str, Any]],
    folder: Path,
    format: str,
    *,
    files: bool = False,
    force: bool = False,
    told: Callable[[dict[str, Any]], None] = lambda row: None,
) -> Exported:
    """Written beside their names first: an export that breaks off leaves no half table under the right name."""
    if format not in FORMATS:
        raise UserErrorException(f"there is no format {format!r}", hint=f"the formats: {', '.join(FORMATS)}")
    kind = FORMATS[format]
    kind.check()
    targets = [folder / name for name in kind.names]
    for path in targets:
        if path.exists() and not force:
            raise UserErrorException(
                f"{path} is there already", hint="choose another folder with -o, or replace it with --force"
            )
    folder.mkdir(parents=True, exist_ok=True)
    parts = [path.with_name(f".{path.name}.part") for path in targets]
    done = Exported(targets, runs=len(rows))
    with ExitStack() as tidy:
        for part in parts:
            tidy.callback(part.unlink, missing_ok=True)
        with kind(parts, rows) as writer:
            for row in rows:
                told(row)
                _export_run(connection, row, writer, done)
        for part, path in zip(parts, targets):
            os.replace(part, path)  # noqa: PTH105  the callback above finds nothing to remove then
    if files:
        for row in rows:
            done.files += _download(connection, row["run_id"], folder / "files" / row["run_id"])
    return done


def _pages(connection: Connection, **query: Any) -> Iterator[dict[str, Any]]:
    """By number: a run that is submitted meanwhile comes at the end, and moves nobody to another page."""
    offset = 0
    while True:
        page = connection.get("/api/runs/table", sort="number", offset=offset, limit=_PAGE, **query)["rows"]
        yield from page
        if len(page) < _PAGE:
            return
        offset += _PAGE


def _export_run(connection: Connection, row: dict[str, Any], writer: Writer, done: Exported) -> None:
    run_id = row["run_id"]
    writer.begin(row)
    for series in connection.get(f"/api/runs/{run_id}/series"):
        name = series["name"]
        if series["kind"] == "scalar":
            for points in _points(connection, run_id, name):
                writer.add(run_id, name, points)
                done.points += len(points.values)
        elif writer.takes_values:
            writer.add_values(name, series["kind"], list(_values(connection, run_id, name)))
        else:
            done.left_out += 1
    writer.end()


def _points(connection: Connection, run_id: str, name: str) -> Iterator[WirePoints]:
    after = 0
    while True:
        data = connection.read(f"/api/runs/{run_id}/metrics/{name}", after=after, limit=_POINTS_AT_ONCE)
        points = decode_points(data)
        if not points.values:
            return
        yield points
        after = points.next


def _values(connection: Connection, run_id: str, name: str) -> Iterator[Any]:
    after = 0
    while True:
        page = connection.get(f"/api/runs/{run_id}/values/{name}", after=after)
        yield from page["values"]
        if not page["values"] or page["next"] >= page["count"]:
            return
        after = page["next"]


def _download(connection: Connection, run_id: str, folder: Path) -> int:
    files = connection.get(f"/api/runs/{run_id}/files")
    for file in files:
        target = folder / file["name"]
        if not target.resolve().is_relative_to(folder.resolve()):
            raise UserErrorException(f"{file['name']!r} of run {run_id} leads out of {str(folder)!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        connection.download(f"/api/runs/{run_id}/files/{file['name']}", target)
    return len(files)
