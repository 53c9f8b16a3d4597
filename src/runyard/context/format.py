"""Binary format of the metrics journal, shared by the writer in a script and the reader in the yard.

A process that logs writes these files into the run's journal folder, all with a prefix unique to the process:

    <stem>.<number>.seg   a header, then records of 32 bytes; each is written once, its commit marker last
    <stem>.names          one JSON array [number, name] per line; the last line with a number is valid
    <stem>.side           one JSON value per line, for values that do not fit a record; the record has the line's offset
    <stem>.lost           only after a full disk: its size is the number of points that could not be written

The last one has no content, because a file can grow without blocks, even on a full disk.
"""

from __future__ import annotations

import os
import struct

from runyard.posix import procfs

# kinds of records: the meaning of the eight value bytes
FLOAT, INT, BOOL, NONE = 1, 2, 3, 4
TEXT, BIG_INT = 5, 6  # side line: a JSON string
LIST = 7  # side line: [values]
ROW = 8  # side line: {column: value}
TABLE = 9  # side line: {column: [values]}
IMAGE = 10  # side line: the artifact's path
VOID = 11  # a slot that was claimed and then not used
NOTE = 12  # side line: text from log_text, not a metric value
# side line: the "data" of a document in the format of SDK v1
CONFUSION_MATRIX, ACCURACY_TABLE, RESIDUALS, PREDICTIONS = 13, 14, 15, 16
HISTOGRAM = 17  # side line: {"bin_edges": …, "bin_counts": …}

NO_STEP = -(2**63)
COMMITTED = 0xC0DE

# value, time, step, metric, kind, commit marker. The marker is the last field, because pack_into writes fields in
# order: a process killed in the middle of a record leaves it without its marker, and readers skip it.
FLOAT_RECORD = struct.Struct("<ddqIHH")
INT_RECORD = struct.Struct("<qdqIHH")
RECORD_BYTES = 32

MAGIC = b"RYJRNL01"
HEADER_BYTES = 256
_HEADER = struct.Struct("<8sIIQQQdI100s")
INTERRUPTED_AT = 248  # offset of a byte, set when an exception may have left a claimed slot empty forever

SEGMENT_SUFFIX, NAMES_SUFFIX, SIDE_SUFFIX, LOST_SUFFIX = ".seg", ".names", ".side", ".lost"
SEGMENT_BYTES = (1 << 14, 1 << 17, 1 << 20)  # of the first segments; all others are as large as the last of these
MAX_LOST = 1 << 53  # a script can set the size of a file to anything
_MAX_RANK = _MAX_PID = (1 << 31) - 1


class Header:  # not a NamedTuple: importing typing would cost every script 10 ms
    def __init__(
        self, number: int, rank: int, pid: int, started: int, dropped: int, created: float, machine: str
    ) -> None:
        self.number = number  # of the segment, from 0
        self.rank = rank
        self.pid = pid
        self.started = started  # start of the process in clock ticks since boot; unique together with the pid
        self.dropped = dropped  # points lost to a full disk before this segment could be created
        self.created = created
        self.machine = machine  # of the writer, as this_machine(); a reader on another cannot check if it is alive

    def pack(self) -> bytes:
        machine = self.machine.encode("ascii", "replace")[:100]
        packed = _HEADER.pack(
            MAGIC, self.number, self.rank, self.pid, self.started, self.dropped, self.created, len(machine), machine
        )
        return packed.ljust(HEADER_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> Header | None:
        """None if the bytes are not a journal header. They may be anything: a script can write to its journal."""
        if len(data) < HEADER_BYTES or data[:8] != MAGIC:
            return None
        _, number, rank, pid, started, dropped, created, length, machine = _HEADER.unpack_from(data)
        if rank > _MAX_RANK or pid > _MAX_PID:
            return None
        text = machine[:length].decode("ascii", "replace")
        return cls(number, rank, pid, started, min(dropped, MAX_LOST), created, text)


def segment_name(stem: str, number: int) -> str:
    return f"{stem}.{number:06d}{SEGMENT_SUFFIX}"


def this_machine() -> str:
    """Boot id and pid namespace: process ids are comparable only between processes for which both are the same."""
    try:
        pid_namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # not Linux
        pid_namespace = 0
    return f"{procfs.boot_id()}/{pid_namespace}"


def writer_is_dead(header: Header) -> bool:
    """True only if certain: a process of another machine or container counts as alive."""
    return header.machine == this_machine() and procfs.start_ticks(header.pid) != header.started
