"""The contract of a datastore: five verbs. Whatever is behind it, a file is there whole or not at all."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import DataException, UserErrorException

PIECES = ".pieces"  # ends the name of the notes beside a half file: which pieces of it are there
Moved = Callable[[int], None]  # bytes since the last call; negative where some have to travel again


@dataclass(frozen=True)
class Stored:
    """One file of a datastore, in one version."""

    path: str  # below the root, with forward slashes
    size: int
    mark: str  # changes with the content; what it is made of is the datastore's own affair
    modified_at: float = 0.0


class Changed(DataException):
    """The file is not the one that was listed any more."""


class Unreachable(DataException):
    """The datastore, or the way to it, is gone; it may come back, and what failed may be tried again."""


class Abandoned(DataException):
    """Whoever wanted it does not want it any more."""


class DataStore(ABC):
    """Verbs block, may be called from any thread, and twice. Errors are ``DataException``: ``Unreachable`` is worth
    another try, the others are not. No message names a credential."""

    kind: str
    is_here = False  # on this machine: a copy in the cache would gain nothing
    marks_are_digests = False  # the mark of a file is its SHA-256: nothing has to be read to know it
    writable = True  # else it is there to be read, and ``put`` and ``delete`` refuse

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The file of that path, or everything below the folder of that path; in no particular order."""

    @abstractmethod
    def head(self, path: str) -> Stored | None:
        """One file; None: there is none."""

    @abstractmethod
    def get(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        """Writes this version of the file to ``half``, and returns the SHA-256 of what is there now.

        A ``half`` that an interrupted call left is gone on with, where the datastore can. Raises ``Changed`` if the
        file is another one by now, FileNotFoundError if it is gone, ``DataException`` if it is not what was put there.
        """

    @abstractmethod
    def put(self, path: str, source: Path, moved: Moved, abandoned: threading.Event) -> tuple[Stored, str]:
        """The file as it is now, in place of what was there before; and its SHA-256.

        Readers see the old one or the new one. Raises ``Changed`` if ``source`` was written to meanwhile: then there
        is still the old one.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """One that is not there is left as it is."""

    def digest_kept(self, stored: Stored) -> str | None:
        """The SHA-256 that was kept beside the file when it was put, where the datastore keeps such things."""
        return None

    def local_path(self, path: str) -> Path | None:
        """Where the file or folder is on this machine, under its own name, if it is."""
        return None

    def content_path(self, stored: Stored) -> Path | None:
        """A file of this machine with the content of that one, whatever it is called."""
        return self.local_path(stored.path)


def clean_path(path: str, what: str = "path") -> str:
    """Relative, with one slash between parts; ``./`` and slashes at either end say nothing."""
    text = str(path).replace("\\", "/") if "/" not in str(path) else str(path)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in text:
        raise UserErrorException(
            f"{what} {path!r} leads out of the datastore", hint="name it from the datastore's root, such as 'mnist'"
        )
    return "/".join(parts)


def listed_path(path: str) -> str:
    """A name that a datastore has listed, as a path on a disk: backslashes are letters there."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise DataException(f"the name {path!r} in the datastore leads out of it", hint="rename it there")
    return "/".join(parts)


def refuse_clashes(paths: Iterable[str]) -> None:
    """Buckets and runs may have both a file and files below it, as if it were a folder; a disk may not."""
    files = set(paths)
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            if folder in files:
                raise UserErrorException(
                    f"{folder!r} is a file in the datastore, and {path!r} is below it: no disk can have both",
                    hint="rename one of them there, or name a part of it that has only one",
                )
            folders.add(folder)
            folder = folder.rpartition("/")[0]


def join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def damaged(name: str, stored: Stored, found: str, wanted: str) -> DataException:
    return DataException(
        f"{stored.path} of datastore {name!r} is damaged: its content is not what was put there",
        hint=f"SHA-256 {found[:12]}… instead of {wanted[:12]}…; upload it again with overwrite=True",
    )


def stop_if(abandoned: threading.Event) -> None:
    if abandoned.is_set():
        raise Abandoned("it was not wanted any more")


def drop(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
