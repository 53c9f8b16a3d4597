"""Resolves the current files of a dataset: the files of its sources, with their names in the dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from runyard.data.base import DataStore, StoredFile, clean_path
from runyard.data.globbing import Pattern, is_pattern
from runyard.errors import UserErrorException
from runyard.spec.dataset import FILE, DatasetDefinition, Source, select_files, url_file_name

_MAX_LISTED = 1000  # files to look at for a hint
_MAX_EXAMPLES = 8


@dataclass(frozen=True)
class ResolvedFile:
    name: str  # in the dataset
    datastore: str
    stored: StoredFile


@dataclass(frozen=True)
class ResolvedFiles:
    files: list[ResolvedFile]  # sorted by name
    is_single_file: bool  # one file, named as such: a script receives its path, not the path of a folder

    @property
    def bytes(self) -> int:
        return sum(file.stored.size for file in self.files)


def resolve_files(definition: DatasetDefinition, open_store: Callable[[str], DataStore]) -> ResolvedFiles:
    """List the files of a dataset in its datastores. Raises UserErrorException for a source without files."""
    listings = [_list_source(source, open_store(source.datastore)) for source in definition.sources]
    common = _common_prefix([listing.base for listing in listings])
    files: dict[str, ResolvedFile] = {}
    for listing in listings:
        for parts, stored in listing.files:
            name = "/".join(parts[len(common) :])
            other = files.get(name)
            if other is not None and other.stored.path != stored.path:
                raise UserErrorException(
                    f"two files of the dataset have the name {name!r}: {other.stored.path} and {stored.path}",
                    hint="create a separate dataset for each",
                )
            files[name] = ResolvedFile(name, listing.source.datastore, stored)
    steps = definition.steps if definition.kind == FILE else ()
    names = select_files(sorted(files), steps)
    if not names:
        raise UserErrorException(
            f"none of the dataset's {len(files):,} files is selected",
            hint="take, skip, take_sample or random_split removed all of them",
        )
    is_single_file = len(listings) == 1 and not steps and listings[0].is_file
    return ResolvedFiles([files[name] for name in names], is_single_file)


def local_source(definition: DatasetDefinition, open_store: Callable[[str], DataStore]) -> tuple[str, str] | None:
    """The datastore and path of a dataset that is exactly one file or folder on this machine; else None."""
    source, steps = definition.sources[0], definition.steps if definition.kind == FILE else ()
    if len(definition.sources) > 1 or steps or source.url or is_pattern(source.path):
        return None
    path = clean_path(source.path)
    local = open_store(source.datastore).local_path(path)
    return (source.datastore, path) if local is not None and local.exists() else None


@dataclass(frozen=True)
class _SourceFiles:
    source: Source
    files: list[tuple[tuple[str, ...], StoredFile]]  # the parts of the path begin with the datastore's name
    base: tuple[str, ...]  # the folder that file names are relative to, as parts
    is_file: bool = False


def _list_source(source: Source, store: DataStore) -> _SourceFiles:
    if source.url:
        return _web_file(source, store)
    path = clean_path(source.path)
    pattern = Pattern(path) if is_pattern(path) else None
    prefix = path if pattern is None else pattern.folder
    folder = (source.datastore, *PurePosixPath(prefix).parts)
    files = [
        ((source.datastore, *stored.path.split("/")), stored)
        for stored in store.list(prefix)
        if pattern is None or pattern.matches(stored.path)
    ]
    if not files:
        raise _no_files_error(source, store, prefix)
    is_file = pattern is None and len(files) == 1 and files[0][1].path == path
    return _SourceFiles(source, files, folder[:-1] if is_file else folder, is_file)


def _web_file(source: Source, store: DataStore) -> _SourceFiles:
    stored = store.head(source.url)
    if stored is None:
        raise UserErrorException(f"there is no file at {source.url}", hint="open it in a browser to see if it exists")
    url = urlsplit(source.url)
    base = (url.netloc, *(part for part in url.path.split("/")[:-1] if part))
    return _SourceFiles(source, [((*base, url_file_name(source.url)), stored)], base, is_file=True)


def _no_files_error(source: Source, store: DataStore, prefix: str) -> UserErrorException:
    location = f"datastore {source.datastore!r}"
    if source.path:
        location = f"{source.path!r} of {location}"
    folder = prefix.rpartition("/")[0] if prefix == clean_path(source.path) else prefix
    names = _names_in(store, folder)
    while folder and not names:  # the folder does not exist: show the contents of its parent
        folder = folder.rpartition("/")[0]
        names = _names_in(store, folder)
    examples = ", ".join(names[:_MAX_EXAMPLES]) + (", …" if len(names) > _MAX_EXAMPLES else "")
    hint = f"files in {repr(folder) if folder else 'the datastore'}: {examples}" if names else "the datastore is empty"
    return UserErrorException(f"no files at {location}", hint=hint)


def _names_in(store: DataStore, folder: str) -> list[str]:
    start = len(folder) + 1 if folder else 0
    names = (stored.path[start:].partition("/") for stored, _ in zip(store.list(folder), range(_MAX_LISTED)))
    return sorted({first + slash for first, slash, _ in names})


def _common_prefix(bases: list[tuple[str, ...]]) -> tuple[str, ...]:
    common = []
    for parts in zip(*bases):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return tuple(common)
