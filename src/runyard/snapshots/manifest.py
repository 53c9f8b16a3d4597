"""The manifest of a snapshot: every path with its kind and the hash of its content. Its own hash is the snapshot's id.

The format is a header line followed by ``path NUL value NUL`` for each entry, sorted by path. The value is ``f digest
size`` for a file, ``x digest size`` for an executable one, ``l target`` for a link, ``d`` for an empty folder. No path
contains NUL, so names with spaces, newlines or invalid UTF-8 need no quoting.
"""

from __future__ import annotations

import operator
import posixpath
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Optional

from runyard.errors import SnapshotException

HEADER = b"runyard manifest 1\n"
_MAX_LINKS = 40  # the kernel opens no path that leads through more
_is_value = re.compile(rb"[fx] [0-9a-f]{64} (?:0|[1-9][0-9]{0,18})|l .+|d", re.DOTALL).fullmatch


class Entry(NamedTuple):
    path: str  # relative, with slashes; invalid UTF-8 as surrogates, as in os.fsdecode
    kind: str  # "file", "link", or "dir" for an empty folder
    executable: bool = False
    size: int = 0
    digest: str = ""  # sha256 of a file's content, in hex
    target: str = ""  # of a link, relative to the link's folder

    def record(self) -> bytes:
        if self.kind == "file":
            return file_record(encode(self.path), self.executable, self.size, self.digest)
        return encode(self.path) + (b"\0l " + encode(self.target) if self.kind == "link" else b"\0d") + b"\0"


class Manifest:
    """The entries of a snapshot, sorted. Creating one from records is cheap: entries are parsed on first access."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._data = _serialize(entry.record() for entry in entries)
        self._id = ""
        self._entries: Optional[tuple[Entry, ...]] = None

    @classmethod
    def of_records(cls, records: Iterable[bytes]) -> Manifest:
        """Create a manifest from trusted records, in any order."""
        manifest = cls(())
        manifest._data = _serialize(records)
        return manifest

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Parse untrusted data. Raises SnapshotException if it is damaged or a path leads outside of the folder."""
        manifest = cls(())
        manifest._data = data
        _check(data)
        return manifest

    def to_bytes(self) -> bytes:
        return self._data

    @property
    def id(self) -> str:
        if not self._id:
            self._id = sha256(self._data).hexdigest()
        return self._id

    @property
    def entries(self) -> tuple[Entry, ...]:
        if self._entries is None:
            self._entries = tuple(_parse(self._data))
        return self._entries

    @property
    def files(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == "file"]

    @property
    def digests(self) -> list[str]:
        """The digests of all file contents, without duplicates."""
        _, values = _fields(self._data)
        return list(dict.fromkeys([value[2:66].decode() for value in values if value[:2] in (b"f ", b"x ")]))

    def has_file(self, path: str) -> bool:
        """True if the snapshot has a file or a link of this name, without parsing all entries."""
        pattern = rb"(?:\0|\A%b)%b\0[fxl] " % (re.escape(HEADER), re.escape(encode(path)))
        return re.search(pattern, self._data) is not None

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"<Manifest {self.id[:12]}: {len(self)} entries>"


def file_record(path: bytes, executable: bool, size: int, digest: str) -> bytes:
    return b"%b\0%b %b %d\0" % (path, b"x" if executable else b"f", digest.encode(), size)


def record_digest(record: bytes) -> str:
    """The digest in a file's record."""
    start = record.rindex(b"\0", 0, -1) + 3
    return record[start : start + 64].decode()


def encode(path: str) -> bytes:
    # not os.fsencode: the id of a snapshot must not depend on the locale of the process
    return path.encode("utf-8", "surrogateescape")


def decode(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def printable(path: str) -> str:
    """Escape a path for output: invalid UTF-8 as ``\\xff``, a newline as ``\\n``."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _serialize(records: Iterable[bytes]) -> bytes:
    return HEADER + b"".join(sorted(records))


def _fields(data: bytes) -> tuple[list[bytes], list[bytes]]:
    fields = data[len(HEADER) :].split(b"\0")
    return fields[0:-1:2], fields[1:-1:2]


def _parse(data: bytes) -> Iterator[Entry]:
    for path, value in zip(*_fields(data)):
        kind = value[:1]
        if kind == b"l":
            yield Entry(decode(path), "link", target=decode(value[2:]))
        elif kind == b"d":
            yield Entry(decode(path), "dir")
        else:
            yield Entry(decode(path), "file", kind == b"x", int(value[67:]), value[2:66].decode())


def _check(data: bytes) -> None:
    # checks complete lists: a loop over entries takes as long as scanning the folder
    if not data.startswith(HEADER) or not data.endswith((b"\0", HEADER)):
        raise _format_error("the header or the end is missing")
    paths, values = _fields(data)
    if data.count(b"\0") % 2:
        raise _format_error("a record is cut off")
    if not all(map(_is_value, values)):
        path = next(path for path, value in zip(paths, values) if not _is_value(value))
        raise _format_error(f"invalid record of {decode(path)!r}")
    if not all(map(operator.lt, paths, paths[1:])):
        raise _format_error("its paths are not sorted, or contain duplicates")
    joined = b"/" + b"/\n/".join(paths) + b"/"
    if paths and (b"//" in joined or b"/./" in joined or b"/../" in joined):
        raise _unsafe_path_error(next(path for path in paths if not {b"", b".", b".."}.isdisjoint(path.split(b"/"))))
    _check_folders(paths)
    links = {path: value[2:] for path, value in zip(paths, values) if value.startswith(b"l ")}
    for path, target in links.items():
        if leads_outside(decode(path), decode(target)) or _chain_leads_outside(path, links):
            raise SnapshotException(
                f"the snapshot has a link {decode(path)!r} to {decode(target)!r}, which leads outside its folder",
                hint="freeze the folder again with this version of Runyard",
                path=decode(path),
            )


def _check_folders(paths: list[bytes]) -> None:
    entries = frozenset(paths)
    folders = {path.rpartition(b"/")[0] for path in paths}
    while folders:
        for folder in folders & entries:
            # a parent that is itself an entry is a file or a link; writing through the link would leave the folder
            raise _unsafe_path_error(next(path for path in paths if path.startswith(folder + b"/")))
        folders = {folder.rpartition(b"/")[0] for folder in folders if folder}


def leads_outside(path: str, target: str) -> bool:
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return resolved == ".." or resolved.startswith(("/", "../"))


def _chain_leads_outside(path: bytes, links: dict[bytes, bytes]) -> bool:
    """Follow a link as the kernel does: `..` after a link is the parent of its target, not of the link."""
    pending = path.split(b"/")[::-1]
    folder: list[bytes] = []
    followed = 0
    while pending:
        name = pending.pop()
        if name == b"..":
            if not folder:
                return True
            folder.pop()
        elif name not in (b"", b"."):
            target = links.get(b"/".join([*folder, name]))
            if target is None:
                folder.append(name)
                continue
            followed += 1
            if followed > _MAX_LINKS:
                return False
            pending.extend(target.split(b"/")[::-1])
    return False


def _format_error(reason: str) -> SnapshotException:
    return SnapshotException(f"invalid snapshot manifest: {reason}", hint="submit the folder again")


def _unsafe_path_error(path: bytes) -> SnapshotException:
    return SnapshotException(
        f"the snapshot has an entry {decode(path)!r}, which leads outside its folder",
        hint="freeze the folder again with this version of Runyard",
        path=decode(path),
    )
