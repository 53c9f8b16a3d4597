"""Datasets of tables: CSV, Parquet or JSON lines files, read as one pandas DataFrame."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.data.base import AbstractDataset
from runyard.sdk.data.partitions import parse_partition_path, partition_keys_of
from runyard.spec.dataset import DROP, FILE, KEEP, PART, SAMPLE, SKIP, TAKE, Reading, Step

_PATH = "Path"  # the column that include_path adds
_BY_TIME = "frame[frame['time'] < '2020-01-01'] selects rows by time"
_DESCRIBE = "frame.describe(include='all') describes it"


class TabularDataset(AbstractDataset):
    """Rows and columns. Only reading them requires pandas."""

    _ARGUMENT_HINT = (
        "name it: dataset.as_named_input('name'); the script reads run.input_datasets['name'].to_pandas_dataframe()"
    )

    def keep_columns(self, columns: Union[str, Sequence[str]], validate: bool = False) -> TabularDataset:
        """Return a dataset of these columns."""
        return self._select_columns(KEEP, columns, validate)

    def drop_columns(self, columns: Union[str, Sequence[str]]) -> TabularDataset:
        """Return a dataset without these columns."""
        return self._select_columns(DROP, columns, False)

    def to_pandas_dataframe(self, on_error: str = "null", out_of_range_datetime: str = "null") -> Any:
        """Return all rows as one ``pandas.DataFrame``, in the order of the file names."""
        pandas = _pandas()
        root = self._local_path if self._local_path is not None else self._files()._resolve_files()
        frame = _read(pandas, self._reading, root, self._definition.partition_format)
        return _apply_steps(frame, self._definition.steps)

    def to_csv_files(self, separator: str = ",") -> Any:
        """Return the files as a file dataset, if they are CSV files already."""
        return self._as_files("to_csv_files", "delimited")

    def to_parquet_files(self) -> Any:
        """Return the files as a file dataset, if they are Parquet files already."""
        return self._as_files("to_parquet_files", "parquet")

    # the SDK v1 had a query engine for these; here pandas does the work

    def __getitem__(self, column: Any) -> Any:
        raise _unavailable("dataset[…]", "frame['column'] is a column, and frame[frame['column'] > 0] selects rows")

    def filter(self, expression: Any) -> Any:
        raise _unavailable("filter", "frame[frame['column'] > 0] selects rows")

    def with_timestamp_columns(
        self, timestamp: Any = None, partition_timestamp: Any = None, validate: bool = False, **_: Any
    ) -> Any:
        raise _unavailable("with_timestamp_columns", _BY_TIME)

    def time_before(self, end_time: Any, include_boundary: bool = True, validate: bool = True) -> Any:
        raise _unavailable("time_before", _BY_TIME)

    def time_after(self, start_time: Any, include_boundary: bool = True, validate: bool = True) -> Any:
        raise _unavailable("time_after", _BY_TIME)

    def time_between(self, start_time: Any, end_time: Any, include_boundary: bool = True, validate: bool = True) -> Any:
        raise _unavailable("time_between", _BY_TIME)

    def time_recent(self, time_delta: Any, include_boundary: bool = True, validate: bool = True) -> Any:
        raise _unavailable("time_recent", _BY_TIME)

    def get_profile(self, workspace: Any = None) -> Any:
        raise _unavailable("get_profile", _DESCRIBE)

    def get_profile_runs(self, workspace: Any = None) -> Any:
        raise _unavailable("get_profile_runs", _DESCRIBE)

    def submit_profile_run(self, compute_target: Any, experiment: Any, cache_datastore_name: Any = None) -> Any:
        raise _unavailable("submit_profile_run", _DESCRIBE)

    def partition_by(
        self,
        partition_keys: Any,
        target: Any,
        name: Any = None,
        show_progress: bool = True,
        partition_as_file_dataset: bool = False,
    ) -> Any:
        raise _unavailable("partition_by", "frame.to_parquet(folder, partition_cols=['key']) writes one folder per key")

    def get_partition_key_values(self, partition_keys: Any = None) -> Any:
        raise _unavailable("get_partition_key_values", "frame[['key']].drop_duplicates(), because each key is a column")

    def to_dask_dataframe(self, *_: Any, **__: Any) -> Any:
        raise _unavailable("to_dask_dataframe", "dask.dataframe.from_pandas(frame, npartitions=8)")

    def to_spark_dataframe(self) -> Any:
        raise _unavailable("to_spark_dataframe", "spark.createDataFrame(frame)")

    @property
    def _reading(self) -> Reading:
        assert self._definition.reading is not None
        return self._definition.reading

    def _files(self) -> AbstractDataset:
        """Return its files as a file dataset; steps are applied when rows are read."""
        from runyard.sdk.data.file_dataset import FileDataset

        definition = dataclasses.replace(self._definition, kind=FILE, steps=(), reading=None, partition_format=None)
        return FileDataset._create(definition, self._workspace)

    def _as_files(self, name: str, format: str) -> AbstractDataset:
        if self._reading.format != format or self._definition.steps:
            raise UserErrorException(
                f"{name} would have to rewrite the table, which is not available in this version",
                hint="write it with pandas: dataset.to_pandas_dataframe().to_csv(…) or .to_parquet(…)",
            )
        return self._files()

    def _select_columns(self, kind: str, columns: Any, validate: bool) -> TabularDataset:
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names or not all(isinstance(column, str) for column in names):
            raise validation.invalid("columns", columns, "a name, or a list of names", error=UserErrorException)
        dataset = self._with_step(Step(kind, columns=names))
        if validate:
            dataset.take(1).to_pandas_dataframe()
        return dataset


def _read(pandas: Any, reading: Reading, root: Path, partition_format: Optional[str]) -> Any:
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    frames, columns = [], None
    for number, path in enumerate(files):
        name = "/" + (path.name if root.is_file() else path.relative_to(root).as_posix())
        try:
            frame = _frame(pandas, reading, path, number, columns)
        except ImportError as error:
            raise UserErrorException(
                f"reading {name} needs a package that is not installed here: {error}",
                hint="pip install pyarrow, or pip install 'runyard[parquet]'",
            ) from None
        except UnicodeDecodeError as error:
            raise UserErrorException(
                f"{name} is not text in {reading.encoding}: {error.reason}",
                hint="pass its encoding: encoding='latin1'",
            ) from error
        except (ValueError, OSError) as error:  # parser errors of pandas are ValueErrors
            raise UserErrorException(f"cannot read {name} as {reading.format}: {error}") from error
        columns = columns if columns is not None else list(frame.columns)
        values = parse_partition_path(partition_format, name) if partition_format else None
        for position, key in enumerate(partition_keys_of(partition_format)):
            frame.insert(position, key, (values or {}).get(key))
        if reading.include_path:
            frame.insert(0, _PATH, name)
        frames.append(frame)
    if not frames:
        raise UserErrorException("the dataset has no files")
    return pandas.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def _frame(pandas: Any, reading: Reading, path: Path, number: int, columns: Optional[list[str]]) -> Any:
    if reading.format == "parquet":
        return _convert_types(pandas, pandas.read_parquet(path), reading)
    if reading.format == "json":
        return _convert_types(pandas, pandas.read_json(path, lines=True, encoding=reading.encoding), reading)
    has_header = reading.header == "all" or (reading.header == "first" and number == 0)
    try:
        frame = pandas.read_csv(
            path,
            sep=reading.separator,
            header=0 if has_header else None,
            encoding=reading.encoding,
            dtype=None if reading.infer_types else str,
            engine="c" if len(reading.separator) == 1 else "python",
        )
    except pandas.errors.EmptyDataError:
        return pandas.DataFrame(columns=columns or [])
    if not has_header:
        names = columns if reading.header == "first" and columns else [f"Column{n + 1}" for n in range(frame.shape[1])]
        frame.columns = names[: frame.shape[1]]
    return _convert_types(pandas, frame, reading)


def _convert_types(pandas: Any, frame: Any, reading: Reading) -> Any:
    for column, kind in reading.types:
        if column not in frame.columns:
            raise UserErrorException(
                f"set_column_types names the column {column!r}, which the table does not have",
                hint=f"its columns: {', '.join(map(str, frame.columns[:30]))}",
            )
        if kind == "datetime":
            frame[column] = pandas.to_datetime(frame[column], errors="coerce")
        elif kind == "string":
            frame[column] = frame[column].astype(str)
        elif kind == "bool":
            frame[column] = frame[column].map(lambda value: str(value).strip().lower() in ("true", "1", "yes"))
        else:
            numbers = pandas.to_numeric(frame[column], errors="coerce")
            frame[column] = numbers.astype("Int64") if kind == "long" else numbers.astype(float)
    return frame


def _apply_steps(frame: Any, steps: Sequence[Step]) -> Any:
    for number, step in enumerate(steps):
        if step.kind == TAKE:
            frame = frame.head(step.count)
        elif step.kind == SKIP:
            frame = frame.iloc[step.count :]
        elif step.kind in (SAMPLE, PART):
            # without the step's number, a split of a sample with the same seed would put all rows in its first part
            draw = random.Random(f"{step.seed} {number}").random
            frame = frame[[step.lower <= draw() < step.share for _ in range(len(frame))]]
        else:
            missing = [column for column in step.columns if column not in frame.columns]
            if missing:
                raise UserErrorException(
                    f"the table has no column {', '.join(map(repr, missing))}",
                    hint=f"its columns: {', '.join(map(str, frame.columns[:30]))}",
                )
            frame = frame[list(step.columns)] if step.kind == KEEP else frame.drop(columns=list(step.columns))
    return frame.reset_index(drop=True)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UserErrorException(
            "to_pandas_dataframe needs pandas, which is not installed in this Python",
            hint="pip install pandas; for the script of a run, add pandas to its pip_packages",
        ) from None
    return pandas


def _unavailable(name: str, alternative: str) -> UserErrorException:
    operation = name if name.startswith("dataset") else f"TabularDataset.{name}"
    return UserErrorException(
        f"{operation} is not available in this version",
        hint=f"with pandas: frame = dataset.to_pandas_dataframe(); {alternative}",
    )
