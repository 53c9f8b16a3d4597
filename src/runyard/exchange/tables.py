"""Export formats. CSV and Parquet: a table of runs and a table of points; JSON: one document with everything."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from runyard.errors import UserErrorException
from runyard.wire.points import NO_STEP, WirePoints

_FIELDS = (
    "run_id", "number", "experiment", "name", "status", "reason", "target", "type", "parent_id", "submitted_by",
    "nodes", "ranks", "duration_s",
)  # fmt: skip
_TIMES = ("created_at", "started_at", "ended_at")
_SPECIAL_VALUES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Writer:
    """Call ``begin`` and ``end`` for each run, and ``add`` in between. Leaving the ``with`` block closes the files."""

    names: tuple[str, ...]
    supports_values = False

    @classmethod
    def check(cls) -> None:
        """Raise UserErrorException if a required package is not installed."""

    def __init__(self, paths: Sequence[Path], rows: Sequence[dict[str, Any]]) -> None:
        raise NotImplementedError

    def begin(self, row: dict[str, Any]) -> None: ...

    def add(self, run_id: str, name: str, points: WirePoints) -> None:
        raise NotImplementedError

    def add_values(self, name: str, kind: str, values: list[Any]) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Csv(Writer):
    names = ("runs.csv", "metrics.csv")

    def __init__(self, paths: Sequence[Path], rows: Sequence[dict[str, Any]]) -> None:
        columns = _columns(rows)
        with open(paths[0], "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow([*_FIELDS, *_TIMES, *(f"{kind}.{name}" for kind, name in columns)])
            for row in rows:
                table.writerow(
                    [
                        *(row[name] for name in _FIELDS),
                        *(_iso(row[name]) for name in _TIMES),
                        *(row[kind].get(name) for kind, name in columns),
                    ]
                )
        self._file = open(paths[1], "w", encoding="utf-8", newline="")  # noqa: SIM115  closed by close()
        self._points = csv.writer(self._file)
        self._points.writerow(["run_id", "name", "step", "time", "value"])

    def add(self, run_id: str, name: str, points: WirePoints) -> None:
        self._points.writerows(
            [run_id, name, "" if step == NO_STEP else step, _iso(time), value]
            for step, time, value in zip(points.steps, points.times, points.values)
        )

    def close(self) -> None:
        self._file.close()


class Json(Writer):
    names = ("runs.json",)
    supports_values = True

    def __init__(self, paths: Sequence[Path], rows: Sequence[dict[str, Any]]) -> None:
        self._file: IO[str] = open(paths[0], "w", encoding="utf-8")  # noqa: SIM115  closed by close()
        self._file.write('{"runs": [')
        self._first_run = True
        self._metric: str | None = None
        self._values: dict[str, Any] = {}

    def begin(self, row: dict[str, Any]) -> None:
        summary = {name: value for name, value in row.items() if name != "metrics"}
        summary["last_metrics"] = row["metrics"]
        self._file.write("\n" if self._first_run else ",\n")
        self._file.write(json.dumps(summary)[:-1] + ', "metrics": {')
        self._first_run, self._metric, self._values = False, None, {}

    def add(self, run_id: str, name: str, points: WirePoints) -> None:
        if name != self._metric:
            self._file.write(f"{']' if self._metric is not None else ''}{', ' if self._metric is not None else ''}")
            self._file.write(f"{json.dumps(name)}: [")
            self._metric = name
        else:
            self._file.write(", ")
        columns = zip(points.steps, points.times, points.values)
        items = ([None if step == NO_STEP else step, time, _json_number(value)] for step, time, value in columns)
        self._file.write(", ".join(map(json.dumps, items)))

    def add_values(self, name: str, kind: str, values: list[Any]) -> None:
        self._values[name] = {"kind": kind, "values": values}

    def end(self) -> None:
        self._file.write(f'{"]" if self._metric is not None else ""}}}, "values": {json.dumps(self._values)}}}')

    def close(self) -> None:
        self._file.write("\n]}\n")
        self._file.close()


class Parquet(Writer):
    names = ("runs.parquet", "metrics.parquet")

    @classmethod
    def check(cls) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise UserErrorException(
                f"Parquet needs the package pyarrow: {error}",
                hint='pip install "runyard[parquet]", or choose --format csv',
            ) from error

    def __init__(self, paths: Sequence[Path], rows: Sequence[dict[str, Any]]) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        self._arrow = arrow
        timestamp = arrow.timestamp("us", tz="UTC")
        parquet.write_table(self._runs(rows, timestamp), paths[0])
        self._schema = arrow.schema(
            [
                ("run_id", arrow.dictionary(arrow.int32(), arrow.string())),
                ("name", arrow.dictionary(arrow.int32(), arrow.string())),
                ("step", arrow.int64()),
                ("time", timestamp),
                ("value", arrow.float64()),
            ]
        )
        self._points = parquet.ParquetWriter(paths[1], self._schema, compression="zstd")

    def add(self, run_id: str, name: str, points: WirePoints) -> None:
        arrow, count = self._arrow, len(points.values)
        steps = arrow.array([None if step == NO_STEP else step for step in points.steps], arrow.int64())
        times = arrow.array([round(time * 1e6) for time in points.times], arrow.int64()).cast(
            self._schema.field(3).type
        )
        constants = [
            arrow.DictionaryArray.from_arrays(arrow.array([0] * count, arrow.int32()), [text])
            for text in (run_id, name)
        ]
        values = arrow.array(points.values, arrow.float64())
        self._points.write_table(arrow.Table.from_arrays([*constants, steps, times, values], schema=self._schema))

    def close(self) -> None:
        self._points.close()

    def _runs(self, rows: Sequence[dict[str, Any]], timestamp: Any) -> Any:
        """Return the table of runs. Parameters are texts, because their types may differ between runs."""
        arrow = self._arrow
        columns: dict[str, Any] = {}
        integer = arrow.int64()
        types = {"number": integer, "nodes": integer, "ranks": integer, "duration_s": arrow.float64()}
        for name in _FIELDS:
            columns[name] = arrow.array([row[name] for row in rows], types.get(name, arrow.string()))
        for name in _TIMES:
            ticks = [None if row[name] is None else round(row[name] * 1e6) for row in rows]
            columns[name] = arrow.array(ticks, integer).cast(timestamp)
        for kind, name in _columns(rows):
            values = [row[kind].get(name) for row in rows]
            if kind == "metrics":
                columns[f"{kind}.{name}"] = arrow.array([_number(value) for value in values], arrow.float64())
            else:
                texts = [None if value is None else _text(value) for value in values]
                columns[f"{kind}.{name}"] = arrow.array(texts, arrow.string())
        return arrow.table(columns)


FORMATS: dict[str, type[Writer]] = {"parquet": Parquet, "csv": Csv, "json": Json}


def _columns(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the parameters, metrics and tags of all runs in the order of their first occurrence."""
    return [
        (kind, name)
        for kind in ("params", "metrics", "tags")
        for name in dict.fromkeys(name for row in rows for name in row[kind])
    ]


def _iso(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


def _json_number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _number(value: Any) -> float | None:
    """Return None for a text, which a column of numbers cannot contain."""
    if isinstance(value, str):
        return _SPECIAL_VALUES.get(value)
    return float(value) if isinstance(value, (int, float)) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
