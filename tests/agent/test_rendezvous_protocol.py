"""The handshake and the messages of agents as pure functions: every other input is refused with one exception."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendezvous_support import CREDENTIALS, JSON_VALUES, make_order

from runyard.agent.diagnosis.log_tail import LogTail
from runyard.agent.diagnosis.root_cause import find_root_cause
from runyard.agent.rendezvous.auth import (
    HELLO_BYTES,
    WELCOME_BYTES,
    AuthenticationError,
    Credentials,
    Hello,
    LeadHandshake,
    MemberHandshake,
)
from runyard.agent.rendezvous.membership import Registration, Rendezvous
from runyard.agent.rendezvous.messages import FROM_LEAD, FROM_MEMBER, InvalidMessage, check_message, parse_frame
from runyard.agent.rendezvous.messaging import NoPeers
from runyard.agent.rendezvous.peer_state import PeerState
from runyard.launch.order import Node
from runyard.lifecycle.state import End, EndReason
from runyard.spec.json import to_json
from runyard.spec.launch import TorchDistributed


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
