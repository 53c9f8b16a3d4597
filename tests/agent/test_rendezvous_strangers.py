"""Strangers and faulty agents at both ends of the rendezvous: any bytes end their own connection, and nothing else."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rendezvous_support import CREDENTIALS, JSON_VALUES, RawMember, connect, make_order

from gang_support import Gang, killed_at_the_end, make_gang, running
from runyard.agent.rendezvous.auth import (
    CHALLENGE_BYTES,
    HELLO_BYTES,
    LeadHandshake,
)
from runyard.agent.rendezvous.client import RendezvousClient
from runyard.agent.rendezvous.membership import open_messaging
from runyard.agent.rendezvous.messages import FROM_MEMBER, InvalidMessage, parse_frame
from runyard.agent.rendezvous.server import RendezvousServer
from runyard.lifecycle.state import EndReason
from runyard.spec.folder import RunFolder
from runyard.spec.launch import TorchDistributed
from runyard.testing.work_orders import wait_until

pytestmark = pytest.mark.usefixtures("sigio_ignored")

ATTACKS = [
    b'{"node": Infinity, "received": 0, "nonce": "0", "proof": "0"}\n'.ljust(HELLO_BYTES),
    b"[" * 3000 + b"\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".ljust(HELLO_BYTES),
    b"\0" * 100_000,
    b"\xff" * HELLO_BYTES,
    b"9" * 50_000,
]


@pytest.fixture(scope="module")
def lead() -> Iterator[RendezvousServer]:
    server = RendezvousServer(make_order(0))
    yield server
    server.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack[:12])
def test_bytes_of_a_stranger_end_only_its_connection(lead: RendezvousServer, attack: bytes) -> None:
    with connect(lead.address) as stranger:
        with suppress(ConnectionError):
            stranger.sendall(attack)
        wait_until(lambda: lead.receive() == [] and is_closed(stranger), "the lead to close the connection")
    RawMember(lead.address, make_order(1), lead.receive).socket.close()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=2 * HELLO_BYTES))
def test_no_bytes_raise_in_the_lead(lead: RendezvousServer, data: bytes) -> None:
    with connect(lead.address) as stranger:
        stranger.sendall(data)
        assert lead.receive() == []
    assert lead.receive() == []


def test_idle_connections_do_not_keep_a_member_out(lead: RendezvousServer) -> None:
    with ExitStack() as strangers:
        for _ in range(500):
            strangers.enter_context(connect(lead.address))
            lead.receive()
        with RawMember(lead.address, make_order(1), lead.receive) as member:
            member.send("idle", seconds=1)
            wait_until(lambda: (1, {"type": "idle", "seconds": 1}) in lead.receive(), "the message of the member")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200) | st.lists(JSON_VALUES, max_size=3).map(lambda value: json.dumps(value).encode()))
def test_no_frame_of_a_member_raises_in_the_lead(payload: bytes) -> None:
    try:
        is_valid = parse_frame(payload, FROM_MEMBER) is not None
    except InvalidMessage:
        is_valid = False
    assume(not is_valid)
    with closing(RendezvousServer(make_order(0))) as server:
        with RawMember(server.address, make_order(1), server.receive) as member:
            member.send_frame(payload)
            wait_until(lambda: server.receive() == [] and server.take_problems(), "the lead to end the connection")
        assert server.lost_nodes() == {}  # the member may connect again


def test_a_member_that_repeats_an_invalid_message_is_lost(lead: RendezvousServer) -> None:
    for _ in range(3):
        with RawMember(lead.address, make_order(1), lead.receive) as member:
            member.send_frame(b'[1, 0, {"type": "rank_ended", "end": {"at": Infinity}}]')
            wait_until(lambda: lead.receive() == [] and lead.take_problems(), "the lead to end the connection")
    evidence = lead.lost_nodes()[1]
    assert evidence.endswith("it sent an invalid message: Infinity is not JSON")


def is_closed(sock: socket.socket) -> bool:
    """True once the other side has closed the connection; reads the challenge on the way."""
    sock.settimeout(0.01)
    try:
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@contextmanager
def impostor(*parts: bytes) -> Iterator[str]:
    """A server that sends these bytes to each connection: before and after it has received something."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.settimeout(30)
                    connection.sendall(parts[0])
                    for part in parts[1:]:
                        connection.recv(1000)
                        connection.sendall(part)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def error_of(address: str) -> str:
    member = RendezvousClient(make_order(1), lambda: address)
    member.send("idle", seconds=1)
    try:
        wait_until(lambda: member.receive() == [] and member.connect_error, "the member to give up the connection")
        assert member.never_connected
        return member.connect_error
    finally:
        member.close()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=100))
def test_no_bytes_raise_in_a_member(data: bytes) -> None:
    with impostor(data) as address:
        assert error_of(address)


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=100))
def test_a_process_without_the_secret_is_not_taken_for_the_lead(welcome: bytes) -> None:
    challenge = LeadHandshake(CREDENTIALS).challenge
    assert len(challenge) == CHALLENGE_BYTES
    with impostor(challenge, welcome) as address:
        assert error_of(address)


@pytest.mark.parametrize(
    "address", ["", "nowhere", "127.0.0.1:99999999999999999999", ":x", "127.0.0.1:0", "[]:1", "\0:1"]
)
def test_an_invalid_address_of_the_lead_is_an_error_of_the_connection(address: str) -> None:
    member = RendezvousClient(make_order(1), lambda: address)
    for _ in range(3):
        assert member.receive() == []
    assert member.never_connected
    member.close()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 3000,
        "{}",
        '{"attempt": 1}',
        '{"attempt": 1, "place": 5}',
        '{"attempt": 1, "place": "\\u0000:1"}',
    ],
)
def test_an_invalid_file_with_the_address_of_the_lead_is_ignored(tmp_path, content: str) -> None:
    """The script of an earlier attempt can write to it."""
    folder = RunFolder(tmp_path)
    folder.lead.write_text(content)
    with closing(open_messaging(make_order(1, folder=str(tmp_path)), folder)) as member:
        for _ in range(3):
            assert member.receive() == []
            assert member.lost_nodes() == {}
        assert member.never_connected


WAIT = "import os, sys, time\nprint('up', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"


def lead_address(gang: Gang) -> str:
    return str(json.loads(wait_until(lambda: gang.folder.lead.exists() and gang.folder.lead.read_bytes()))["place"])


def test_a_run_survives_strangers(tmp_path) -> None:
    gate = tmp_path / "gate"
    gang = make_gang(tmp_path, WAIT, TorchDistributed(), str(gate))

    @settings(max_examples=100, deadline=None)
    @given(st.binary(max_size=2 * HELLO_BYTES) | st.binary(min_size=HELLO_BYTES) | JSON_VALUES.map(json.dumps))
    def attack(data: bytes | str) -> None:
        with connect(lead_address(gang)) as stranger, suppress(ConnectionError):
            stranger.sendall(data.encode() + b"\n" if isinstance(data, str) else data)
        assert gang.agents[0].poll() is None

    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        for data in ATTACKS:
            with connect(lead_address(gang)) as stranger, suppress(ConnectionError):
                stranger.sendall(data)
        attack()
        gate.touch()
        assert gang.end().reason is EndReason.SUCCEEDED
    assert not gang.folder.agent_log.exists()


@pytest.mark.real
def test_a_node_can_join_while_strangers_hold_and_open_connections(tmp_path) -> None:
    gang = make_gang(tmp_path, "print('up')", TorchDistributed(), nodes=3)
    stop = threading.Event()
    with killed_at_the_end(gang), ExitStack() as strangers:
        gang.start_node(0)
        gang.start_node(1)
        address = lead_address(gang)
        for _ in range(500):
            strangers.enter_context(connect(address))

        def keep_connecting() -> None:
            while not stop.is_set():
                with suppress(OSError), connect(address) as stranger:
                    stranger.sendall(b"x")

        threads = [threading.Thread(target=keep_connecting, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            gang.start_node(2)
            assert gang.end().reason is EndReason.SUCCEEDED
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_an_invalid_message_of_a_member_ends_the_run_with_a_reason_and_no_traceback(tmp_path) -> None:
    gang = make_gang(tmp_path, WAIT, TorchDistributed(), str(tmp_path / "gate"))
    with killed_at_the_end(gang):
        gang.start_node(0)
        address = lead_address(gang)
        for _ in range(3):
            with RawMember(address, gang.orders[1]) as member:
                member.send("register", registration={"node": {"name": "node-1"}}, boot_id=1, now="")
                wait_until(partial(is_closed, member.socket), "the lead to close the connection")
        end = gang.end()
    assert (end.reason, end.node) == (EndReason.NODE_LOST, "node-1")
    assert "sent an invalid message: register has an invalid value" in end.message
    assert [event["event"] for event in gang.events()].count("warning") == 3
    assert not gang.folder.agent_log.exists()
