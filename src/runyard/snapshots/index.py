"""What the last freeze of a folder saw: with it an unchanged file is recognised by its stat and not read again.

The index is a cache. Losing it costs time, never a wrong snapshot: a damaged one, one of another folder or of another
version counts as none.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import struct
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from runyard.errors import SnapshotException
from runyard.snapshots.atomic import whole_file

# of a file: its stat as `pack_stat` packs it, then its record in the manifest. Bytes, because 10,000 of them are loaded
# and saved in a third of the time that tuples take.
Seen = bytes
# folder (b"" or with a slash at its end) -> name -> Seen
Tree = dict[bytes, dict[bytes, Seen]]

_MAGIC = b"runyard index 1\n"
_DIGEST_BYTES = 32
_SETTLE_NS = 2_000_000_000
_STAT = struct.Struct("<qqQQI")
pack_stat = _STAT.pack  # mtime_ns, ctime_ns, size, inode, mode: the same again means the same content, once settled
KEY_BYTES = _STAT.size
_NEVER = bytes(KEY_BYTES)


class Index(NamedTuple):
    path: Path
    root: bytes

    def load(self) -> Tree:
        try:
            data = self.path.read_bytes()
        except OSError:
            return {}
        start = len(_MAGIC) + _DIGEST_BYTES
        # the hash comes first: marshal may crash the interpreter on bytes that it did not write
        if not data.startswith(_MAGIC) or sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
            return {}
        root, tree = marshal.loads(data[start:])
        return tree if root == self.root else {}

    def save(self, tree: Tree) -> None:
        payload = marshal.dumps((self.root, tree), 4)  # 4 is read by every Python from 3.4 on
        # a cache that cannot be written (a full disk, a read-only home) is no reason to refuse a submission
        with contextlib.suppress(OSError, SnapshotException), whole_file(self.path, durable=False) as partial:
            partial.write_bytes(_MAGIC + sha256(payload).digest() + payload)


def index_of(root: bytes, folder: Path) -> Index:
    return Index(folder / f"{sha256(root).hexdigest()[:32]}.index", root)


def seen(about: os.stat_result, record: bytes, *, read_at_s: float) -> Seen:
    """What to remember of a file whose content was read at that time.

    A file that was written in the last moments may be written again within the same tick of the file system's clock,
    and then looks unchanged. It is remembered with a stat that matches nothing, so that the next freeze reads it again.
    Only the ctime tells: the mtime is whatever a program set it to.
    """
    if about.st_ctime_ns + _SETTLE_NS > read_at_s * 1e9:
        return _NEVER + record
    return pack_stat(about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino, about.st_mode) + record


def is_settled(remembered: Seen) -> bool:
    return not remembered.startswith(_NEVER)
