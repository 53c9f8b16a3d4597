"""HTTP over a unix socket, against a server that sends its responses in awkward pieces."""

import io
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client.http_unix import ConnectionLost, HttpConnection

Handler = Callable[[socket.socket], None]


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], HttpConnection]]:
    """Returns a function that starts a server with the given handler and connects to it."""
    threads: list[threading.Thread] = []
    with tempfile.TemporaryDirectory(prefix="ry", dir="/tmp") as folder:
        path = str(Path(folder) / "s")
        connections = []
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()

            def start(handler: Handler) -> HttpConnection:
                def handle() -> None:
                    connection, _ = listening.accept()
                    with connection:
                        handler(connection)

                threads.append(threading.Thread(target=handle))
                threads[-1].start()
                connections.append(HttpConnection(path, timeout_s=10))
                return connections[-1]

            yield start
            for client in connections:
                client.close()
            for thread in threads:
                thread.join(10)


def receive(connection: socket.socket, until: bytes = b"\r\n\r\n") -> bytes:
    data = b""
    while until not in data:
        data += connection.recv(1 << 16)
    return data


def send_bytewise(connection: socket.socket, data: bytes) -> None:
    for index in range(len(data)):
        connection.sendall(data[index : index + 1])


def test_a_response_that_arrives_byte_by_byte_is_complete(serve):
    def handler(connection):
        receive(connection)
        send_bytewise(connection, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        receive(connection)
        send_bytewise(connection, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    client = serve(handler)
    response = client.request("GET", "/a")
    assert (response.status, response.read()) == (200, b"hello")
    response = client.request("GET", "/b")
    assert (response.status, response.read()) == (404, b"")


def test_chunks_are_joined_wherever_they_were_split(serve):
    def handler(connection):
        receive(connection)
        send_bytewise(connection, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        send_bytewise(connection, b"4\r\none\n\r\n8;x=y\r\ntwo\nthre\r\n2\r\ne\n\r\n0\r\n\r\n")

    response = serve(handler).request("GET", "/")
    assert [response.readline() for _ in range(4)] == [b"one\n", b"two\n", b"three\n", b""]


def test_a_timeout_does_not_lose_data_that_has_arrived(serve):
    resume = threading.Event()

    def handler(connection):
        receive(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhalf a\r\n")
        resume.wait(10)
        connection.sendall(b"6\r\n line\n\r\n0\r\n\r\n")

    client = serve(handler)
    response = client.request("GET", "/")
    client.set_timeout(0.02)
    with pytest.raises(TimeoutError):
        response.readline()
    resume.set()
    client.set_timeout(10)
    assert response.readline() == b"half a line\n"


def test_a_file_is_sent_in_chunks(serve):
    requests = []

    def handler(connection):
        requests.append(receive(connection, b"0\r\n\r\n"))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    assert serve(handler).request("PUT", "/f", io.BytesIO(b"content")).status == 204
    assert b"Transfer-Encoding: chunked" in requests[0]
    assert requests[0].endswith(b"\r\n\r\n7\r\ncontent\r\n0\r\n\r\n")


def test_a_connection_closed_in_the_middle_of_a_response_is_an_error(serve):
    def handler(connection):
        receive(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")

    response = serve(handler).request("GET", "/")
    with pytest.raises(ConnectionLost):
        response.read()
