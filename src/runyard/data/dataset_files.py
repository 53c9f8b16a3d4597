"""Which files a dataset has now: those of its sources, under the names that they have below the dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from runyard.data.base import DataStore, Stored, clean_path
from runyard.data.globbing import Pattern, is_pattern
from runyard.errors import UserErrorException
from runyard.spec.dataset import FILE, DatasetDefinition, Source, chosen, file_name_of


@dataclass(frozen=True)
class Member:
    name: str  # below the dataset
    datastore: str
    stored: Stored


@dataclass(frozen=True)
class Members:
    files: list[Member]  # by name
    single: bool  # one file, named as such: it is given to a script as that file, not as a folder with it

    @property
    def bytes(self) -> int:
        return sum(member.stored.size for member in self.files)


def members_of(definition: DatasetDefinition, store: Callable[[str], DataStore]) -> Members:
    """Asks the datastores, so it may take a while. A source at which nothing is is an error that names it."""
    found = [_found(source, store(source.datastore)) for source in definition.sources]
    common = _common([one.base for one in found])
    files: dict[str, Member] = {}
    for one in found:
        for parts, stored in one.files:
            name = "/".join(parts[len(common) :])
            other = files.get(name)
            if other is not None and other.stored.path != stored.path:
                raise UserErrorException(
                    f"two files of the dataset have the name {name!r}: {other.stored.path} and {stored.path}",
                    hint="make a dataset of each",
                )
            files[name] = Member(name, one.source.datastore, stored)
    steps = definition.steps if definition.kind == FILE else ()
    names = chosen(sorted(files), steps)
    if not names:
        raise UserErrorException(
            f"nothing is left of the dataset's {len(files):,} files",
            hint="take, skip, take_sample or random_split left none",
        )
    first = found[0]
    alone = len(found) == 1 and not steps
    return Members(
        [files[name] for name in names],
        single=alone and first.is_file,
    )


def whole_of(definition: DatasetDefinition, store: Callable[[str], DataStore]) -> tuple[str, str] | None:
    """The datastore and the path of the one file or folder that it is, if that is on this machine."""
    source, steps = definition.sources[0], definition.steps if definition.kind == FILE else ()
    if len(definition.sources) > 1 or steps or source.url or is_pattern(source.path):
        return None
    path = clean_path(source.path)
    local = store(source.datastore).local_path(path)
    return (source.datastore, path) if local is not None and local.exists() else None


@dataclass(frozen=True)
class _Found:
    source: Source
    files: list[tuple[tuple[str, ...], Stored]]  # the parts of the whole path, the datastore's name first
    base: tuple[str, ...]  # the folder that names are below of, as parts
    is_file: bool = False


def _found(source: Source, store: DataStore) -> _Found:
    if source.url:
        return _of_web(source, store)
    path = clean_path(source.path)
    pattern = Pattern(path) if is_pattern(path) else None
    fixed = path if pattern is None else pattern.folder
    top = (source.datastore, *PurePosixPath(fixed).parts)
    listed = [(one, (source.datastore, *one.path.split("/"))) for one in store.list(fixed)]
    files = [(parts, one) for one, parts in listed if pattern is None or pattern.fits(one.path)]
    if not files:
        raise _nothing(source, store, fixed)
    is_file = pattern is None and len(files) == 1 and files[0][1].path == path
    return _Found(source, files, top[:-1] if is_file else top, is_file)


def _of_web(source: Source, store: DataStore) -> _Found:
    stored = store.head(source.url)
    if stored is None:
        raise UserErrorException(f"there is nothing at {source.url}", hint="open it in a browser: does it still exist?")
    parts = urlsplit(source.url)
    above = [part for part in parts.path.split("/")[:-1] if part]
    base = (parts.netloc, *above)
    return _Found(source, [((*base, file_name_of(source.url)), stored)], base, is_file=True)


def _nothing(source: Source, store: DataStore, fixed: str) -> UserErrorException:
    what = (
        f"{source.path!r} of the datastore {source.datastore!r}" if source.path else f"datastore {source.datastore!r}"
    )
    folder = fixed.rpartition("/")[0] if fixed == clean_path(source.path) else fixed
    near = _in_folder(store, folder)
    while folder and not near:  # of a folder that is not there, the one above tells what it may be called
        folder = folder.rpartition("/")[0]
        near = _in_folder(store, folder)
    there = f"in {folder!r}" if folder else "in the datastore"
    hint = f"{there}: {', '.join(near[:8])}{', …' if len(near) > 8 else ''}" if near else "the datastore is empty"
    return UserErrorException(f"no file is at {what}", hint=hint)


def _in_folder(store: DataStore, folder: str) -> list[str]:
    return sorted({_first_below(one.path, folder) for one, _ in zip(store.list(folder), range(1000))})


def _first_below(path: str, folder: str) -> str:
    rest = path[len(folder) :].lstrip("/") if folder else path
    first, slash, _ = rest.partition("/")
    return first + slash


def _common(bases: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest folder that all are below of."""
    found = []
    for level in zip(*bases):
        if len(set(level)) > 1:
            break
        found.append(level[0])
    return tuple(found)
