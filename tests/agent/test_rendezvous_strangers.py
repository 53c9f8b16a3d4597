"""Strangers and faulty agents at both ends of the rendezvous: any bytes end their own connection, and nothing else."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import fields
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rendezvous_support import RawMember, connect, make_order

from gang_support import Gang, killed_at_the_end, make_gang, running
from runyard.agent.diagnosis.log_tail import LogTail
from runyard.agent.diagnosis.root_cause import find_root_cause
from runyard.agent.rendezvous.auth import (
    CHALLENGE_BYTES,
    HELLO_BYTES,
    WELCOME_BYTES,
    AuthenticationError,
    Credentials,
    Hello,
    LeadHandshake,
    MemberHandshake,
)
from runyard.agent.rendezvous.client import RendezvousClient
from runyard.agent.rendezvous.membership import Registration, Rendezvous
from runyard.agent.rendezvous.messages import FROM_LEAD, FROM_MEMBER, InvalidMessage, check_message, parse_frame
from runyard.agent.rendezvous.messaging import NoPeers
from runyard.agent.rendezvous.peer_state import PeerState
from runyard.agent.rendezvous.server import RendezvousServer
from runyard.launch.order import Node
from runyard.lifecycle.state import End, EndReason
from runyard.spec.json import to_json
from runyard.spec.launch import TorchDistributed
from runyard.testing.work_orders import wait_until

pytestmark = pytest.mark.usefixtures("sigio_ignored")

CREDENTIALS = Credentials("run_1", 1, "between us")
ATTACKS = [
    b'{"node": Infinity, "received": 0, "nonce": "0", "proof": "0"}\n'.ljust(HELLO_BYTES),
    b"[" * 3000 + b"\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".ljust(HELLO_BYTES),
    b"\0" * 100_000,
    b"\xff" * HELLO_BYTES,
    b"9" * 50_000,
]
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(max_size=10), items, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def lead() -> Iterator[RendezvousServer]:
    server = RendezvousServer(make_order(0))
    yield server
    server.close()


def rank_end(**values: Any) -> dict[str, Any]:
    tail = {"lines": ["a"], "traceback": "", "error": "", "is_final": False}
    facts = {"rank": 1, "title": "rank 1", "decides": True, "node": "b", "exit_code": 1, "at": 1.0, "oom": False}
    return {**facts, "tail": tail, "wrote_at": 1.0, **values}


MEMBER_MESSAGES: list[dict[str, Any]] = [
    {"type": "register", "registration": to_json(Registration(Node("b"), (), "h")), "boot_id": "x", "now": 1.0},
    {"type": "rank_ended", "end": rank_end()},
    {"type": "rank_ended", "end": rank_end(exit_code=0, tail=None)},
    {"type": "node_ended", "processes_left": 0},
    {"type": "end", "end": to_json(End(EndReason.SCRIPT_FAILED, "x", rank=1, node="b")), "at": 1.0},
    {"type": "idle", "seconds": 0.5},
    {"type": "stacks", "number": 1, "ranks": {"1": "in f (train.py:1)"}},
]
LEAD_MESSAGES: list[dict[str, Any]] = [
    {"type": "nodes", "registrations": [to_json(Registration(Node(name), (), "h")) for name in "ab"]},
    {"type": "end", "end": to_json(End(EndReason.SUCCEEDED, exit_code=0)), "at": 1.0},
    {"type": "dump_stacks", "number": 1},
    {"type": "run_daemon", "command": "prted", "prefix": "/opt"},
]


# ---- authentication, as pure functions


def shake_hands(lead_side: LeadHandshake, member: MemberHandshake) -> Hello:
    hello = lead_side.verify(member.hello(lead_side.challenge))
    assert member.verify(lead_side.welcome(5)) == 5
    return hello


def test_two_agents_with_one_secret_agree_on_keys_for_each_direction() -> None:
    lead_side, member = LeadHandshake(CREDENTIALS), MemberHandshake(CREDENTIALS, 1, 3)
    assert shake_hands(lead_side, member) == Hello(1, 3)
    (lead_sends, lead_receives), (member_sends, member_receives) = lead_side.frame_keys(), member.frame_keys()
    for sender, receiver in ((lead_sends, member_receives), (member_sends, lead_receives)):
        for payload in (b"", b"x", b"y" * 1000):
            frame = sender.seal(payload)
            assert receiver.open(frame[4:-32], frame[-32:]) == payload


def test_a_repeated_omitted_or_reflected_frame_is_not_accepted() -> None:
    lead_side, member = LeadHandshake(CREDENTIALS), MemberHandshake(CREDENTIALS, 1, 0)
    shake_hands(lead_side, member)
    sender, receiver = member.frame_keys()[0], lead_side.frame_keys()[1]
    first, second = sender.seal(b"1"), sender.seal(b"2")
    assert receiver.open(first[4:-32], first[-32:]) == b"1"
    assert receiver.open(first[4:-32], first[-32:]) is None
    omitting = lead_side.frame_keys()[1]
    assert omitting.open(second[4:-32], second[-32:]) is None
    assert member.frame_keys()[1].open(first[4:-32], first[-32:]) is None


@pytest.mark.parametrize(
    "other", [Credentials("run_2", 1, "between us"), Credentials("run_1", 2, "between us"), Credentials("run_1", 1, "")]
)
def test_another_run_attempt_or_secret_is_refused_by_both_sides(other: Credentials) -> None:
    lead_side, member = LeadHandshake(CREDENTIALS), MemberHandshake(other, 1, 0)
    hello = member.hello(lead_side.challenge)
    with pytest.raises(AuthenticationError):
        lead_side.verify(hello)
    impostor = LeadHandshake(other)
    member = MemberHandshake(CREDENTIALS, 1, 0)
    member.hello(impostor.challenge)
    with pytest.raises(AuthenticationError):
        member.verify(impostor.welcome(0))


@given(st.sampled_from(["challenge", "hello", "welcome"]), st.data())
def test_a_handshake_with_one_changed_bit_fails(message: str, data: st.DataObject) -> None:
    def transmit(name: str, content: bytes) -> bytes:
        if name != message:
            return content
        bit = data.draw(st.integers(0, len(content) * 8 - 1))
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    lead_side, member = LeadHandshake(CREDENTIALS), MemberHandshake(CREDENTIALS, 1, 0)

    def shake() -> None:
        lead_side.verify(transmit("hello", member.hello(transmit("challenge", lead_side.challenge))))
        member.verify(transmit("welcome", lead_side.welcome(0)))

    with pytest.raises(AuthenticationError):
        shake()


@given(st.binary(min_size=HELLO_BYTES, max_size=HELLO_BYTES), st.binary(min_size=WELCOME_BYTES, max_size=WELCOME_BYTES))
def test_any_other_bytes_are_refused(hello: bytes, welcome: bytes) -> None:
    with pytest.raises(AuthenticationError):
        LeadHandshake(CREDENTIALS).verify(hello)
    member = MemberHandshake(CREDENTIALS, 1, 0)
    member.hello(LeadHandshake(CREDENTIALS).challenge)
    with pytest.raises(AuthenticationError):
        member.verify(welcome)


# ---- messages of authenticated agents


def test_every_message_that_agents_send_is_valid() -> None:
    for messages, schema in ((MEMBER_MESSAGES, FROM_MEMBER), (LEAD_MESSAGES, FROM_LEAD)):
        assert {message["type"] for message in messages} == set(schema)
        for message in messages:
            assert parse_frame(json.dumps([1, 0, message]).encode(), schema) == (1, 0, message)


def test_every_field_of_an_end_and_of_a_log_tail_is_checked() -> None:
    for name in (field.name for field in fields(End)):
        message = json.loads(json.dumps(LEAD_MESSAGES[1]))
        message["end"][name] = [name]
        with pytest.raises(InvalidMessage):
            check_message(message, FROM_LEAD)
    for name in (field.name for field in fields(LogTail)):
        end = rank_end()
        end["tail"] = {**end["tail"], name: {}}
        with pytest.raises(InvalidMessage):
            check_message({"type": "rank_ended", "end": end}, FROM_MEMBER)


@given(st.binary(max_size=300) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_other_frame_is_an_invalid_message(payload: bytes) -> None:
    for schema in (FROM_MEMBER, FROM_LEAD):
        with suppress(InvalidMessage):
            parse_frame(payload, schema)


@st.composite
def changed_messages(draw: st.DrawFn) -> dict[str, Any]:
    """A valid message of a member with one value replaced, at any depth."""
    message: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(MEMBER_MESSAGES))))
    container, key = message, "type"
    while True:
        key = draw(st.sampled_from(sorted(container)))
        if not (isinstance(container[key], dict) and container[key] and draw(st.booleans())):
            break
        container = container[key]
    replacements = JSON_VALUES | st.integers(-3, 3) | st.floats(-1e9, 1e9) | st.sampled_from(["0", "1", "", "é"])
    container[key] = draw(replacements)
    return message


@given(st.lists(changed_messages(), min_size=1, max_size=4))
def test_a_message_that_passes_the_check_never_raises_in_the_lead(messages: list[dict[str, Any]]) -> None:
    peers = PeerState()
    order = make_order(0, launch=TorchDistributed())
    rendezvous = Rendezvous(order, NoPeers(), ["a", "b"])
    for message in messages:
        with suppress(InvalidMessage):
            valid = check_message(message, FROM_MEMBER)
            rendezvous.handle(1, valid)
            peers.handle(1, valid)
    find_root_cause(peers.rank_ends, 2e9, 2)
    json.dumps(peers.rank_ends, allow_nan=False)


# ---- a lead, and strangers that connect to it


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


# ---- a member, and strangers at the lead's address


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


# ---- a real run on two nodes


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
