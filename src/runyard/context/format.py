"""The journal's files, byte for byte: the only thing that the writer in a script and the reader in the yard share.

A process that logs owns three kinds of files in the run's journal folder, all beginning with its own stem:

    <stem>.<number>.seg   a header, then records of 32 bytes; each is written once, its commit marker last
    <stem>.names          [number, name] a line; of two lines with one number the later one holds
    <stem>.side           one JSON value a line; what does not fit a record, which then holds the line's offset
"""

from __future__ import annotations

import os
import struct

# kinds of records: what the eight value bytes are
FLOAT, INT, BOOL, NONE = 1, 2, 3, 4
TEXT, BIG_INT = 5, 6  # side line: a JSON string
LIST = 7  # side line: [values]
ROW = 8  # side line: {column: value}
TABLE = 9  # side line: {column: [values]}
IMAGE = 10  # side line: the artifact's path
VOID = 11  # a slot that was claimed and then not needed
NOTE = 12  # side line: a text to be read, not a value
CONFUSION_MATRIX, ACCURACY_TABLE, RESIDUALS, PREDICTIONS = (
    13,
    14,
    15,
    16,
)  # side line: the data of the SDK v1's document
HISTOGRAM = 17  # side line: {"bin_edges": …, "bin_counts": …}

NO_STEP = -(2**63)
COMMITTED = 0xC0DE

# value, time, step, metric, kind, commit marker. The marker is the last field, because pack_into writes fields in
# order: a process killed in the middle of a record leaves it without its marker, and readers pass it over.
FLOAT_RECORD = struct.Struct("<ddqIHH")
INT_RECORD = struct.Struct("<qdqIHH")
RECORD_BYTES = 32

MAGIC = b"RYJRNL01"
HEADER_BYTES = 256
_HEADER = struct.Struct("<8sIIQQQdI100s")
INTERRUPTED_AT = 248  # one byte, set when an exception may have left a claimed slot empty for good

SEGMENT_SUFFIX, NAMES_SUFFIX, SIDE_SUFFIX = ".seg", ".names", ".side"


class Header:  # no NamedTuple: typing alone would take a script 10 ms to import
    def __init__(
        self, number: int, rank: int, pid: int, started: int, dropped: int, created: float, machine: str
    ) -> None:
        self.number = number  # of the segment, from 0
        self.rank = rank
        self.pid = pid
        self.started = started  # the process's start in clock ticks since boot; with the pid it names one for good
        self.dropped = dropped  # points lost to a full disk before this segment could be made
        self.created = created
        self.machine = machine  # boot and pid namespace; a reader elsewhere cannot tell whether the process lives

    def pack(self) -> bytes:
        machine = self.machine.encode("ascii", "replace")[:100]
        packed = _HEADER.pack(
            MAGIC, self.number, self.rank, self.pid, self.started, self.dropped, self.created, len(machine), machine
        )
        return packed.ljust(HEADER_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes) -> Header | None:
        """None when the bytes are not a journal's header."""
        if len(data) < HEADER_BYTES or data[:8] != MAGIC:
            return None
        _, number, rank, pid, started, dropped, created, length, machine = _HEADER.unpack_from(data)
        return cls(number, rank, pid, started, dropped, created, machine[:length].decode("ascii"))


def segment_name(stem: str, number: int) -> str:
    return f"{stem}.{number:06d}{SEGMENT_SUFFIX}"


def this_machine() -> str:
    try:
        boot = _content("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # not Linux
        return f"{os.uname().nodename}/0"


def process_start(pid: int) -> int | None:
    """When the process started, in ticks since boot; None when it is gone, or only its zombie is left."""
    try:
        fields = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()  # the name in parentheses may hold anything
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (FileNotFoundError, ProcessLookupError):
        return 0 if not os.path.isdir("/proc/self") and _answers(pid) else None


def writer_is_dead(header: Header) -> bool:
    """True only when it is certain; a process of another machine or container counts as living."""
    return header.machine == this_machine() and process_start(header.pid) != header.started


def _content(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
