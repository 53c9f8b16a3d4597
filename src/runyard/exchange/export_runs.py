"""Exports runs and their metrics as tables. Points are streamed, so they need not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.exchange.tables import FORMATS, Writer
from runyard.posix import atomic_write
from runyard.wire.points import WirePoints, decode_points

_MAX_POINTS_PER_REQUEST = 200_000
_PAGE = 1000


@dataclass(frozen=True)
class RunSelection:
    """The runs to export: one, those of an experiment, or all."""

    run_id: str | None = None
    experiment: str | None = None


@dataclass
class ExportResult:
    paths: list[Path]
    runs: int = 0
    points: int = 0
    files: int = 0
    skipped_series: int = 0  # tables, images and others that only JSON contains


def select_rows(connection: Connection, selection: RunSelection) -> list[dict[str, Any]]:
    if selection.run_id is not None:
        rows = _pages(connection, query=f'"{selection.run_id}"')
        return [row for row in rows if row["run_id"] == selection.run_id]
    return list(_pages(connection, experiment=selection.experiment))


def export(
    connection: Connection,
    rows: list[dict[str, Any]],
    folder: Path,
    format: str,
    *,
    files: bool = False,
    force: bool = False,
    on_run: Callable[[dict[str, Any]], None] = lambda row: None,
) -> ExportResult:
    """Write the tables of some runs; a failed export leaves no incomplete table.

    Args:
        connection: Connection to the yard.
        rows: The runs, as returned by :func:`select_rows`.
        folder: Folder for the tables.
        format: ``parquet``, ``csv`` or ``json``.
        files: Also download the files of the runs.
        force: Replace existing tables.
        on_run: Called before each run.

    Raises:
        UserErrorException: The format is unknown, or a table exists already.
    """
    if format not in FORMATS:
        raise UserErrorException(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    writer_class = FORMATS[format]
    writer_class.check()
    targets = [folder / name for name in writer_class.names]
    for path in targets:
        if path.exists() and not force:
            raise UserErrorException(
                f"{path} exists already", hint="choose another folder with -o, or replace it with --force"
            )
    folder.mkdir(parents=True, exist_ok=True)
    result = ExportResult(targets, runs=len(rows))
    with ExitStack() as stack:
        drafts = [stack.enter_context(atomic_write.replace_file(path)) for path in targets]
        with writer_class(drafts, rows) as writer:
            for row in rows:
                on_run(row)
                _export_run(connection, row, writer, result)
    if files:
        for row in rows:
            result.files += _download(connection, row["run_id"], folder / "files" / row["run_id"])
    return result


def _pages(connection: Connection, **query: Any) -> Iterator[dict[str, Any]]:
    """Iterate in the order of run numbers, so that runs submitted during the export do not shift the pages."""
    offset = 0
    while True:
        page = connection.get("/api/runs/table", sort="number", offset=offset, limit=_PAGE, **query)["rows"]
        yield from page
        if len(page) < _PAGE:
            return
        offset += _PAGE


def _export_run(connection: Connection, row: dict[str, Any], writer: Writer, result: ExportResult) -> None:
    run_id = row["run_id"]
    writer.begin(row)
    for series in connection.get(f"/api/runs/{run_id}/series"):
        name = series["name"]
        if series["kind"] == "scalar":
            for points in _points(connection, run_id, name):
                writer.add(run_id, name, points)
                result.points += len(points.values)
        elif writer.supports_values:
            writer.add_values(name, series["kind"], list(_values(connection, run_id, name)))
        else:
            result.skipped_series += 1
    writer.end()


def _points(connection: Connection, run_id: str, name: str) -> Iterator[WirePoints]:
    after = 0
    while True:
        data = connection.read(f"/api/runs/{run_id}/metrics/{name}", after=after, limit=_MAX_POINTS_PER_REQUEST)
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
