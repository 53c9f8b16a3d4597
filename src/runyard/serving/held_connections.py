"""Duplicates of the client connections of a service's workers, with which another worker continues if one dies."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import termios
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from runyard.scoring.receive_buffer import ACTIVE, BEGUN, FILL, HEADER_BYTES, ID, RECORD, RECORD_OFFSETS
from runyard.scoring.responses import problem

_ESTABLISHED, _CLOSE_WAIT = 1, 8
_TCP_INFO_BYTES = 136
_TOTALS_OFFSET = 120  # of the numbers of acknowledged and of received bytes in struct tcp_info


class Outcome(Enum):
    CONTINUE = "continue"
    CLOSE = "close"  # a response was begun, or the connection is about to end
    GIVE_UP = "give up"  # the request was begun too often, and may be what ends the workers


class HeldConnection(NamedTuple):
    id: int
    connection: int
    buffer: int

    def close(self) -> None:
        os.close(self.connection)
        os.close(self.buffer)

    def settle(self, retries: int) -> Outcome:
        """Decide what becomes of the connection after its worker has ended; prepare its buffer for the next worker.

        Args:
            retries: How often a scoring call that had begun is repeated.
        """
        with socket.socket(fileno=os.dup(self.connection)) as connection, mmap.mmap(self.buffer, 0) as memory:
            totals = _totals(connection)
            with memoryview(memory) as view, view[:HEADER_BYTES].cast("Q") as numbers:
                if totals is None or numbers[ID] != self.id or numbers[ACTIVE] > 1:
                    return Outcome.CLOSE
                received, sent = totals
                for record in (numbers[ACTIVE], 1 - numbers[ACTIVE]):
                    before, sent_before, start = RECORD.unpack_from(memory, RECORD_OFFSETS[record])
                    if sent_before == sent:
                        break
                else:
                    return Outcome.CLOSE
                fill = start + received - before
                if not 0 <= start <= fill <= len(memory) - HEADER_BYTES:
                    return Outcome.CLOSE
                if record != numbers[ACTIVE]:  # the response was written, and the worker died before it noted that
                    numbers[BEGUN] = 0
                numbers[ACTIVE], numbers[FILL] = record, fill
                return Outcome.GIVE_UP if numbers[BEGUN] > retries else Outcome.CONTINUE

    def respond_with_failure(self) -> None:
        request_id = os.urandom(6).hex()
        response = problem(502, "the worker ended while it processed this request", request_id)
        head = (
            f"HTTP/1.1 502 Bad Gateway\r\ncontent-type: {response.kind}\r\nserver: runyard\r\n"
            f"x-request-id: {request_id}\r\n"
            f"content-length: {len(response.body)}\r\nconnection: close\r\n\r\n"
        )
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection)) as connection:
            connection.send(head.encode() + response.body, socket.MSG_DONTWAIT)
            connection.shutdown(socket.SHUT_WR)


class HeldConnections:
    """The connections of one worker."""

    def __init__(self) -> None:
        self._connections: dict[int, HeldConnection] = {}

    def open(self, ids: Sequence[int], descriptors: Sequence[int]) -> None:
        if len(descriptors) != 2 * len(
            ids
        ):  # this process has too many open files: the connections end with the worker
            for descriptor in descriptors:
                os.close(descriptor)
            return
        for id, connection, buffer in zip(ids, descriptors[::2], descriptors[1::2]):
            self.add(HeldConnection(id, connection, buffer))

    def add(self, held: HeldConnection) -> None:
        self.close([held.id])
        self._connections[held.id] = held

    def replace_buffer(self, id: int, descriptors: Sequence[int]) -> None:
        held = self._connections.get(id)
        if held is None or len(descriptors) != 1:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        self._connections[id] = held._replace(buffer=descriptors[0])
        os.close(held.buffer)

    def close(self, ids: Sequence[int]) -> None:
        for id in ids:
            held = self._connections.pop(id, None)
            if held is not None:
                held.close()

    def take_all(self) -> list[HeldConnection]:
        connections, self._connections = list(self._connections.values()), {}
        return connections


def _totals(connection: socket.socket) -> tuple[int, int] | None:
    """The numbers of bytes that were received and sent by the workers of a connection; None if it has ended."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        unread, unacknowledged = (
            int(struct.unpack("i", fcntl.ioctl(connection, request, bytes(4)))[0])
            for request in (termios.FIONREAD, termios.TIOCOUTQ)
        )
    except OSError:
        return None
    if len(info) < _TCP_INFO_BYTES or info[0] not in (_ESTABLISHED, _CLOSE_WAIT):
        return None
    acknowledged, received = struct.unpack_from("=QQ", info, _TOTALS_OFFSET)
    end_of_stream = 1 if info[0] == _CLOSE_WAIT else 0  # the kernel counts it as a byte
    return received - end_of_stream - unread, acknowledged + unacknowledged
