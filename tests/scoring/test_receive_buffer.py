"""The state of a connection after its worker was killed, from the receive buffer and the kernel's counters."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from runyard.scoring.receive_buffer import BufferPool, ReceiveBuffer
from runyard.serving.held_connections import HeldConnection, Outcome
from support import eventually

REQUEST = b"POST /score HTTP/1.1\r\ncontent-length: 1\r\n\r\n7"


class Parts(NamedTuple):
    client: socket.socket
    worker: socket.socket
    pool: BufferPool
    buffer: ReceiveBuffer
    held: HeldConnection

    def send(self, data: bytes) -> None:
        """Send as the client, receive as the worker."""
        self.client.sendall(data)
        end = self.buffer.fill + len(data)
        while self.buffer.fill < end:
            self.buffer.add(self.worker.recv_into(self.buffer.room()))

    def respond(self, response: bytes, unparsed: int = 0) -> None:
        self.buffer.prepare_response(len(response), unparsed)
        self.worker.sendall(response)

    def next_worker(self) -> bytes:
        """The bytes with which the next worker begins."""
        buffer = self.pool.adopt(self.held.id, os.dup(self.held.buffer))
        return bytes(buffer.data[buffer.start : buffer.fill])


@pytest.fixture
def parts() -> Iterator[Parts]:
    messages: list[tuple[dict[str, object], tuple[int, ...]]] = []

    def send(message: dict[str, object], descriptors: tuple[int, ...]) -> bool:
        messages.append((message, tuple(map(os.dup, descriptors))))
        return True

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as worker:
            pool = BufferPool(send)
            buffer = pool.open(worker.fileno())
            ((_, descriptors),) = messages
            yield Parts(client, worker, pool, buffer, HeldConnection(buffer.id, *descriptors))


def test_an_unanswered_request_is_continued(parts: Parts) -> None:
    parts.send(REQUEST)
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST


def test_bytes_that_the_worker_received_but_did_not_count_are_continued(parts: Parts) -> None:
    parts.client.sendall(REQUEST)
    assert parts.worker.recv_into(parts.buffer.room()) == len(REQUEST)  # killed before the next instruction
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST


def test_an_answered_request_is_not_repeated(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.buffer.begin_scoring()
    parts.respond(b"HTTP/1.1 200 OK\r\n\r\n")  # killed before it could note that
    assert parts.held.settle(retries=0) is Outcome.CONTINUE
    assert parts.next_worker() == b""


def test_a_response_that_was_prepared_but_not_sent_is_repeated(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.buffer.prepare_response(100, 0)
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST


def test_a_connection_with_half_a_response_is_closed(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.buffer.prepare_response(100, 0)
    parts.worker.sendall(b"HTTP/1.1 200 OK")
    assert parts.held.settle(retries=1) is Outcome.CLOSE


def test_the_next_request_of_a_connection_is_continued(parts: Parts) -> None:
    for number in range(5):
        parts.send(REQUEST)
        parts.respond(b"HTTP/1.1 200 OK\r\n\r\n")
        parts.buffer.next_request(is_flushed=True)
        assert number < 5
    parts.send(REQUEST[:10])
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST[:10]


def test_a_request_behind_an_answered_one_is_continued(parts: Parts) -> None:
    parts.send(REQUEST + b"GET / HTTP/1.1\r\n\r\n")
    parts.respond(b"HTTP/1.1 200 OK\r\n\r\n", unparsed=18)
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == b"GET / HTTP/1.1\r\n\r\n"


def test_a_request_that_arrives_before_the_response_is_flushed_is_continued(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.buffer.prepare_response(19, 0)
    parts.buffer.next_request(is_flushed=False)
    parts.send(REQUEST[:20])
    parts.worker.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST[:20]


def test_a_request_that_was_begun_too_often_is_given_up(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.buffer.begin_scoring()
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    parts.buffer.begin_scoring()
    assert parts.held.settle(retries=1) is Outcome.GIVE_UP
    parts.held.respond_with_failure()
    assert parts.client.recv(65536).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


def test_a_client_that_has_closed_its_sending_side_still_gets_its_response(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.client.shutdown(socket.SHUT_WR)
    eventually(lambda: parts.worker.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x08", "the end arrives")
    assert parts.held.settle(retries=1) is Outcome.CONTINUE
    assert parts.next_worker() == REQUEST


def test_a_connection_that_is_about_to_be_closed_is_not_continued(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.respond(b"HTTP/1.1 200 OK\r\n\r\n")
    parts.buffer.retire()
    assert parts.held.settle(retries=1) is Outcome.CLOSE


def test_a_connection_that_the_client_has_reset_is_not_continued(parts: Parts) -> None:
    parts.send(REQUEST)
    parts.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    parts.client.close()
    deadline = time.monotonic() + 60
    while parts.held.settle(retries=1) is not Outcome.CLOSE:
        assert time.monotonic() < deadline


def test_memory_is_used_again_for_the_next_connection(parts: Parts) -> None:
    file = parts.buffer.file
    parts.send(REQUEST)
    parts.buffer.release()
    assert parts.held.settle(retries=1) is Outcome.CLOSE
    assert parts.pool.open(parts.worker.fileno()).file == file
    parts.buffer.begin_scoring()  # a call for the closed connection that still runs
    assert parts.held.settle(retries=1) is Outcome.CLOSE  # the memory has another connection's id
