"""A dataset, as described: which files of which datastores or addresses, which of them, and how tables are read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Optional

from runyard.errors import UserErrorException
from runyard.spec.json import to_json

FILE, TABULAR = "file", "tabular"
DIRECT = "direct"  # an input that the script gets as the dataset itself, not as a path

TAKE, SKIP, SAMPLE, PART, KEEP, DROP = "take", "skip", "sample", "part", "keep", "drop"
OF_ROWS, OF_COLUMNS = (TAKE, SKIP, SAMPLE, PART), (KEEP, DROP)
FORMATS = ("delimited", "parquet", "json")


@dataclass(frozen=True)
class Source:
    """A file, a folder or a pattern of a datastore; or an address of the web."""

    datastore: str = ""  # "": it is an address
    path: str = ""  # "" = all of the datastore; * ? and ** stand for names
    url: str = ""


@dataclass(frozen=True)
class Step:
    """What is done to the list of files, or to the rows of a table, one after the other."""

    kind: str
    count: int = 0  # take, skip
    share: float = 0.0  # sample: how likely each one is taken; part: the upper bound of [lower, share)
    lower: float = 0.0  # part: of a split, whose parts lie beside each other in [0, 1)
    seed: int = 0
    columns: tuple[str, ...] = ()  # keep, drop


@dataclass(frozen=True)
class Reading:
    """How the files of a table are read."""

    format: str  # "delimited", "parquet", "json"
    separator: str = ","
    header: str = "all"  # the first line of: "all" files alike, "first" of them only, "none"
    encoding: str = "utf8"
    quoting: bool = False  # line ends inside of quotes
    infer_types: bool = True
    types: tuple[tuple[str, str], ...] = ()  # column, type: what is not inferred
    include_path: bool = False
    lines: bool = True  # of json: one object a line


@dataclass(frozen=True)
class DatasetDefinition:
    kind: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...] = ()
    reading: Optional[Reading] = None
    partition_format: Optional[str] = None

    @property
    def key(self) -> str:
        """The same definition has the same key."""
        text = json.dumps(to_json(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def chosen(names: list[str], steps: tuple[Step, ...]) -> list[str]:
    """Which of the files, after each step; the order is that of their names."""
    for number, step in enumerate(steps):
        if step.kind == TAKE:
            names = names[: step.count]
        elif step.kind == SKIP:
            names = names[step.count :]
        elif step.kind in (SAMPLE, PART):
            names = [name for name in names if step.lower <= _place(name, step.seed, number) < step.share]
    return names


def _place(name: str, seed: int, number: int) -> float:
    """A number in [0, 1) of the name's own: a file that comes later moves no other from one part to the other.

    With the step's number: a split of a sample by the same seed would else find all in its first part.
    """
    first = hashlib.sha256(f"{seed} {number}\0{name}".encode("utf-8", "surrogateescape")).digest()[:7]
    return int.from_bytes(first, "big") / (1 << 56)


def file_name_of(url: str) -> str:
    """The file that an address of the web names."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    return unquote(parts.path).rstrip("/").rpartition("/")[2] or (parts.hostname or "file")


def from_stored(data: Any) -> DatasetDefinition:
    from runyard.spec.json import from_json

    return from_json(DatasetDefinition, data)


def checked(definition: DatasetDefinition) -> DatasetDefinition:
    """One that another program may have written: refused here, or it works later."""
    kind, reading = definition.kind, definition.reading
    if kind not in (FILE, TABULAR):
        raise UserErrorException(f"there is no kind of dataset {kind!r}", hint=f"kinds: {FILE}, {TABULAR}")
    if not definition.sources:
        raise UserErrorException("a dataset needs at least one source")
    for source in definition.sources:
        if source is None or bool(source.datastore) == bool(source.url):
            raise UserErrorException("a source of a dataset is a place in a datastore, or a url")
    if (kind == TABULAR) != (reading is not None) or (reading is not None and reading.format not in FORMATS):
        raise UserErrorException("a table says how it is read, and nothing else does", hint=f"{', '.join(FORMATS)}")
    for step in definition.steps:
        if step is None or step.kind not in (*OF_ROWS, *(OF_COLUMNS if kind == TABULAR else ())):
            raise UserErrorException(f"a {kind} dataset has no step {getattr(step, 'kind', None)!r}")
        if not all(isinstance(number, int) and number < 1 << 62 for number in (step.count, abs(step.seed))):
            raise UserErrorException(f"the numbers of the step {step.kind!r} must be whole")
        if step.count < 0:
            raise UserErrorException(f"the count of the step {step.kind!r} must not be below 0")
    return definition
