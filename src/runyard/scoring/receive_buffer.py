"""Received bytes of one connection, in memory that outlives the worker.

The service's supervisor has a duplicate of every client connection and of its receive buffer. If the worker dies, the
kernel therefore neither closes the connection nor discards the request, and another worker continues with both. The
kernel copies received bytes directly into the buffer, and its counters of the connection show how many arrived and
whether a response was written, so the state is exact at any instruction at which the worker may be killed.

A buffer begins with a header of 64-bit numbers: the connection's id, the index of the active record, the end of the
data, the number of times that scoring of the request was begun; then two records. A record holds the number of bytes
that were received and sent on the connection before its oldest unanswered request, and where that request starts.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

ID, ACTIVE, FILL, BEGUN = range(4)
HEADER_BYTES = 128
RECORD = struct.Struct("=QQQ")
RECORD_OFFSETS = (64, 96)
_SIZE = 16 * 1024
_MAX_FREE = 256
_DETACHED = memoryview(bytearray(HEADER_BYTES)).cast("Q")
SendFunction = Callable[[dict[str, Any], Sequence[int]], bool]


class ReceiveBuffer:
    __slots__ = (
        *("_active", "_memory", "_next_received", "_next_sent", "_next_start", "_numbers", "_pool", "_received"),
        *("_sent", "answered", "data", "file", "fill", "id", "start"),
    )

    def __init__(self, pool: BufferPool, id: int, file: int, memory: Any) -> None:
        self._pool, self.id, self.file = pool, id, file
        self._map(memory)
        self.answered = False  # a response was written, and no byte was received since
        self._active = self._numbers[ACTIVE]
        self._received, self._sent, self.start = RECORD.unpack_from(memory, RECORD_OFFSETS[self._active])
        self._next_received = self._next_sent = self._next_start = 0
        self.fill: int = self._numbers[FILL]

    @property
    def is_shared(self) -> bool:
        """True if the supervisor can pass the connection to another worker."""
        return self.file >= 0 and self._numbers[ID] != 0

    def room(self) -> memoryview:
        """Free space for received bytes; never empty."""
        if self.fill == len(self.data):
            self.reserve(self.fill - self.start + _SIZE)
        return self.data[self.fill :]

    def reserve(self, size: int) -> None:
        """Make room for ``size`` more bytes."""
        if len(self.data) - self.fill < size:
            self._pool.grow(self, self.fill - self.start + size)

    def add(self, count: int) -> None:
        """Count bytes that were received into ``room()``."""
        self.fill += count
        self._numbers[FILL] = self.fill

    def begin_scoring(self) -> None:
        self._numbers[BEGUN] += 1

    def add_interim_response(self, size: int) -> None:
        self._sent += size
        RECORD.pack_into(self._memory, RECORD_OFFSETS[self._active], self._received, self._sent, self.start)

    def prepare_response(self, size: int, unparsed: int) -> None:
        """Prepare the record that is valid once a response of ``size`` bytes is written.

        Args:
            size: Length of the response.
            unparsed: Number of bytes at the end of the buffer that belong to later requests.
        """
        if self.answered:  # the client did not wait for the previous response
            self._activate()
        self._next_received = self._received + self.fill - self.start - unparsed
        self._next_sent = self._sent + size
        self._next_start = self.fill - unparsed if unparsed else 0
        self._write_next()
        self._numbers[BEGUN] = 0
        self.answered = True

    def next_request(self, is_flushed: bool) -> None:
        """Discard an answered request before more bytes are received.

        Args:
            is_flushed: True if the kernel has accepted the whole response; else the next bytes follow the old ones.
        """
        if is_flushed:
            self._activate()
        elif self._next_start == 0:
            self._next_start = self.fill
            self._write_next()

    def retire(self) -> None:
        """Leave the connection out of a handover: it is about to be closed."""
        self._numbers[ID] = 0

    def release(self) -> None:
        self._pool.release(self)

    def detach(self) -> tuple[int, Any]:
        """The memory for the next connection."""
        file, self.file, self._numbers = self.file, -1, _DETACHED
        return file, self._memory

    def move(self, file: int, memory: Any) -> Any:
        """Continue in larger memory; the previous memory."""
        content, previous, previous_numbers = self.data[self.start : self.fill], self._memory, self._numbers
        begun, moved_by = previous_numbers[BEGUN], self.start
        memory[HEADER_BYTES : HEADER_BYTES + len(content)] = content
        content.release()
        self._map(memory)
        self.file, self._active, self.start, self.fill = file, 0, 0, self.fill - self.start
        RECORD.pack_into(memory, RECORD_OFFSETS[0], self._received, self._sent, 0)
        self._numbers[ACTIVE], self._numbers[FILL], self._numbers[BEGUN] = 0, self.fill, begun
        self._numbers[ID] = self.id
        if self.answered:
            self._next_start -= moved_by if self._next_start else 0
            self._write_next()
        previous_numbers[ID] = 0
        return previous

    def _map(self, memory: Any) -> None:
        self._memory = memory
        self._numbers = memoryview(memory)[:HEADER_BYTES].cast("Q")
        self.data = memoryview(memory)[HEADER_BYTES:]

    def _write_next(self) -> None:
        offset = RECORD_OFFSETS[1 - self._active]
        RECORD.pack_into(self._memory, offset, self._next_received, self._next_sent, self._next_start)

    def _activate(self) -> None:
        self.answered = False
        self._active = self._numbers[ACTIVE] = 1 - self._active
        self._received, self._sent, self.start = self._next_received, self._next_sent, self._next_start
        if self.start == 0:
            self.fill = self._numbers[FILL] = 0


class BufferPool:
    """Buffers of a worker's connections. ``send`` passes a message with descriptors to the supervisor."""

    def __init__(self, send: SendFunction) -> None:
        self._send = send
        self._free: list[tuple[int, Any]] = []
        self._last_id = os.getpid() << 32

    def open(self, connection: int) -> ReceiveBuffer:
        """A buffer for an accepted connection; private if the kernel has no memory files."""
        file, memory = self._free.pop() if self._free else _shared_memory(_SIZE)
        self._last_id += 1
        _reset(memory, self._last_id)
        buffer = ReceiveBuffer(self, self._last_id, file, memory)
        if file >= 0:
            self._send({"open": [buffer.id]}, (connection, file))
        return buffer

    def private(self) -> ReceiveBuffer:
        """A buffer that ends with this process, for connections from other workers, which repeat a lost request."""
        memory = bytearray(_SIZE)
        _reset(memory, 0)
        return ReceiveBuffer(self, 0, -1, memory)

    def adopt(self, id: int, file: int) -> ReceiveBuffer:
        """The buffer of a connection that another worker had."""
        return ReceiveBuffer(self, id, file, mmap.mmap(file, 0))

    def grow(self, buffer: ReceiveBuffer, size: int) -> None:
        needed = HEADER_BYTES + size
        file, memory = _shared_memory(needed) if buffer.file >= 0 else (-1, bytearray(needed))
        before = buffer.file
        _reset(memory, 0)
        previous = buffer.move(file, memory)
        if file >= 0:
            self._send({"buffer": buffer.id}, (file,))
        self._recycle(before, previous)

    def release(self, buffer: ReceiveBuffer) -> None:
        if buffer.file >= 0:
            buffer.retire()
            self._send({"closed": [buffer.id]}, ())
            # a scoring call that still runs for the connection must not write into the memory of the next one
            self._recycle(*buffer.detach())

    def _recycle(self, file: int, memory: Any) -> None:
        if file < 0:
            return
        if len(memory) == _SIZE and len(self._free) < _MAX_FREE:
            self._free.append((file, memory))
        else:
            os.close(file)


def _shared_memory(size: int) -> tuple[int, Any]:
    file = -1
    try:
        file = os.memfd_create("runyard-request", os.MFD_CLOEXEC)
        os.ftruncate(file, size)
        return file, mmap.mmap(file, size)
    except (AttributeError, OSError):  # a kernel without memory files, or no descriptor is left
        if file >= 0:
            os.close(file)
        return -1, bytearray(size)


def _reset(memory: Any, id: int) -> None:
    memory[:HEADER_BYTES] = bytes(HEADER_BYTES)
    struct.pack_into("=Q", memory, 0, id)
