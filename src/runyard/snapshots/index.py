"""The index of a folder's last snapshot: files with an unchanged stat are not read again.

The index is a cache. Losing it costs time but never produces a wrong snapshot: a damaged index, or one of another
folder or version, is ignored.
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
from runyard.snapshots.write_errors import replace_file

# a file's stat, packed by `pack_stat`, followed by its record in the manifest; bytes, because loading and saving
# 10,000 of them takes a third of the time that tuples take
IndexEntry = bytes
# folder (b"" or ending with a slash) -> file name -> entry
Tree = dict[bytes, dict[bytes, IndexEntry]]

_MAGIC = b"runyard index 1\n"
_DIGEST_BYTES = 32
_SETTLE_NS = 2_000_000_000
_STAT = struct.Struct("<qqQQI")
pack_stat = _STAT.pack  # mtime_ns, ctime_ns, size, inode, mode: equal values mean equal content, once settled
KEY_BYTES = _STAT.size
_UNSETTLED = bytes(KEY_BYTES)


class Index(NamedTuple):
    path: Path
    root: bytes

    def load(self) -> Tree:
        try:
            data = self.path.read_bytes()
        except OSError:
            return {}
        start = len(_MAGIC) + _DIGEST_BYTES
        # the hash is checked first: marshal may crash the interpreter on damaged data
        if not data.startswith(_MAGIC) or sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
            return {}
        root, tree = marshal.loads(data[start:])
        return tree if root == self.root else {}

    def save(self, tree: Tree) -> None:
        payload = marshal.dumps((self.root, tree), 4)  # version 4 is readable by Python 3.4 and later
        # a cache that cannot be written (full disk, read-only home) must not prevent a submission
        with contextlib.suppress(OSError, SnapshotException), replace_file(self.path) as draft:
            draft.write_bytes(_MAGIC + sha256(payload).digest() + payload)


def index_of(root: bytes, folder: Path) -> Index:
    return Index(folder / f"{sha256(root).hexdigest()[:32]}.index", root)


def index_entry(status: os.stat_result, record: bytes, *, read_at_s: float) -> IndexEntry:
    """The entry of a file whose content was read at that time.

    A file that was written moments ago can be written again within the same tick of the file system's clock, and then
    looks unchanged. Its entry gets a stat that never matches, so that the next snapshot reads the file again. Only
    the ctime is used: programs can set the mtime to any value.
    """
    if status.st_ctime_ns + _SETTLE_NS > read_at_s * 1e9:
        return _UNSETTLED + record
    return pack_stat(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode) + record


def is_settled(entry: IndexEntry) -> bool:
    return not entry.startswith(_UNSETTLED)
