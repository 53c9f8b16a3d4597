"""Dataset definitions: the source files, steps that select from them, and how tables are parsed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Optional

from runyard.errors import UserErrorException
from runyard.spec.json import to_json

FILE, TABULAR = "file", "tabular"
DIRECT = "direct"  # mode of an input that the script gets as a dataset object instead of a path

TAKE, SKIP, SAMPLE, PART, KEEP, DROP = "take", "skip", "sample", "part", "keep", "drop"
ROW_STEPS, COLUMN_STEPS = (TAKE, SKIP, SAMPLE, PART), (KEEP, DROP)
FORMATS = ("delimited", "parquet", "json")


@dataclass(frozen=True)
class Source:
    """A file, folder or glob pattern in a datastore, or a URL."""

    datastore: str = ""  # "": use `url`
    path: str = ""  # "" = all of the datastore; may contain *, ? and **
    url: str = ""


@dataclass(frozen=True)
class Step:
    """One operation on the list of files or on the rows of a table; steps apply in order."""

    kind: str
    count: int = 0  # take, skip
    share: float = 0.0  # sample: probability of each item; part: upper bound of [lower, share)
    lower: float = 0.0  # part: lower bound; the parts of a split divide [0, 1)
    seed: int = 0
    columns: tuple[str, ...] = ()  # keep, drop


@dataclass(frozen=True)
class Reading:
    """Parser options for the files of a table."""

    format: str  # "delimited", "parquet", "json"
    separator: str = ","
    header: str = "all"  # which files start with a header line: "all", "first" or "none"
    encoding: str = "utf8"
    quoting: bool = False  # quoted values may contain line breaks
    infer_types: bool = True
    types: tuple[tuple[str, str], ...] = ()  # (column, type) that are not inferred
    include_path: bool = False
    lines: bool = True  # json: one object per line


@dataclass(frozen=True)
class DatasetDefinition:
    kind: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...] = ()
    reading: Optional[Reading] = None
    partition_format: Optional[str] = None

    @property
    def key(self) -> str:
        """Content hash of the definition."""
        text = json.dumps(to_json(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def select_files(names: list[str], steps: tuple[Step, ...]) -> list[str]:
    """Apply the steps to a sorted list of file names."""
    for number, step in enumerate(steps):
        if step.kind == TAKE:
            names = names[: step.count]
        elif step.kind == SKIP:
            names = names[step.count :]
        elif step.kind in (SAMPLE, PART):
            names = [name for name in names if step.lower <= _position(name, step.seed, number) < step.share]
    return names


def _position(name: str, seed: int, step_number: int) -> float:
    """A number in [0, 1) that depends on the name only, so that adding a file does not move others between parts.

    It includes the step number: otherwise all files of a sample would be in the first part of a split with its seed.
    """
    first = hashlib.sha256(f"{seed} {step_number}\0{name}".encode("utf-8", "surrogateescape")).digest()[:7]
    return int.from_bytes(first, "big") / (1 << 56)


def url_file_name(url: str) -> str:
    """The file name in a URL."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    return unquote(parts.path).rstrip("/").rpartition("/")[2] or (parts.hostname or "file")


def validate_definition(definition: DatasetDefinition) -> DatasetDefinition:
    """Refuse an invalid definition from an API client now, so that it cannot fail later."""
    kind, reading = definition.kind, definition.reading
    if kind not in (FILE, TABULAR):
        raise UserErrorException(f"unknown kind of dataset: {kind!r}", hint=f"kinds: {FILE}, {TABULAR}")
    if not definition.sources:
        raise UserErrorException("a dataset needs at least one source")
    for source in definition.sources:
        if source is None or bool(source.datastore) == bool(source.url):
            raise UserErrorException("a source of a dataset must have either a datastore or a url")
    if (kind == TABULAR) != (reading is not None) or (reading is not None and reading.format not in FORMATS):
        raise UserErrorException(
            "a tabular dataset needs a reading, and a file dataset must not have one",
            hint=f"formats: {', '.join(FORMATS)}",
        )
    for step in definition.steps:
        if step is None or step.kind not in (*ROW_STEPS, *(COLUMN_STEPS if kind == TABULAR else ())):
            raise UserErrorException(f"unknown step for a {kind} dataset: {getattr(step, 'kind', None)!r}")
        if not all(isinstance(number, int) and number < 1 << 62 for number in (step.count, abs(step.seed))):
            raise UserErrorException(f"count and seed of the step {step.kind!r} must be integers")
        if step.count < 0:
            raise UserErrorException(f"count of the step {step.kind!r} must not be negative, got {step.count}")
    return definition
