"""HTTP over a unix socket, against a server that answers in awkward pieces."""

import io
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client.http_unix import Broken, Channel

Talk = Callable[[socket.socket], None]


@pytest.fixture
def serve() -> Iterator[Callable[[Talk], Channel]]:
    """A server that does with its one connection what it is told."""
    threads: list[threading.Thread] = []
    with tempfile.TemporaryDirectory(prefix="ry", dir="/tmp") as folder:
        path = str(Path(folder) / "s")
        channels = []
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()

            def start(talk: Talk) -> Channel:
                def answer() -> None:
                    connection, _ = listening.accept()
                    with connection:
                        talk(connection)

                threads.append(threading.Thread(target=answer))
                threads[-1].start()
                channels.append(Channel(path, timeout_s=10))
                return channels[-1]

            yield start
            for channel in channels:
                channel.close()
            for thread in threads:
                thread.join(10)


def heard(connection: socket.socket, until: bytes = b"\r\n\r\n") -> bytes:
    data = b""
    while until not in data:
        data += connection.recv(1 << 16)
    return data


def in_single_bytes(connection: socket.socket, data: bytes) -> None:
    for place in range(len(data)):
        connection.sendall(data[place : place + 1])


def test_an_answer_that_comes_byte_by_byte_is_whole(serve):
    def talk(connection):
        heard(connection)
        in_single_bytes(connection, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        heard(connection)
        in_single_bytes(connection, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    channel = serve(talk)
    answer = channel.ask("GET", "/a")
    assert (answer.status, answer.read()) == (200, b"hello")
    answer = channel.ask("GET", "/b")
    assert (answer.status, answer.read()) == (404, b"")


def test_chunks_are_put_together_wherever_they_were_cut(serve):
    def talk(connection):
        heard(connection)
        in_single_bytes(connection, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        in_single_bytes(connection, b"4\r\none\n\r\n8;x=y\r\ntwo\nthre\r\n2\r\ne\n\r\n0\r\n\r\n")

    answer = serve(talk).ask("GET", "/")
    assert [answer.readline() for _ in range(4)] == [b"one\n", b"two\n", b"three\n", b""]


def test_a_timeout_loses_nothing_that_had_arrived(serve):
    go_on = threading.Event()

    def talk(connection):
        heard(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhalf a\r\n")
        go_on.wait(10)
        connection.sendall(b"6\r\n line\n\r\n0\r\n\r\n")

    channel = serve(talk)
    answer = channel.ask("GET", "/")
    channel.wait_at_most(0.02)
    with pytest.raises(TimeoutError):
        answer.readline()
    go_on.set()
    channel.wait_at_most(10)
    assert answer.readline() == b"half a line\n"


def test_a_file_travels_in_chunks(serve):
    arrived = []

    def talk(connection):
        arrived.append(heard(connection, b"0\r\n\r\n"))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    assert serve(talk).ask("PUT", "/f", io.BytesIO(b"content")).status == 204
    assert b"Transfer-Encoding: chunked" in arrived[0]
    assert arrived[0].endswith(b"\r\n\r\n7\r\ncontent\r\n0\r\n\r\n")


def test_a_server_that_goes_away_in_the_middle_is_an_error_and_not_a_short_answer(serve):
    def talk(connection):
        heard(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")

    answer = serve(talk).ask("GET", "/")
    with pytest.raises(Broken):
        answer.read()
