"""The messages between agents, and the check that a received one is complete and well-formed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from runyard.agent.rendezvous.frame_socket import MAX_FRAME_BYTES
from runyard.lifecycle.state import EndReason
from runyard.spec.strict_json import parse_json

Message = dict[str, Any]  # "type" and further values
Check = Callable[[Any], bool]
Schema = Mapping[str, Mapping[str, Check]]  # the values of each type of message

_MAX_DEPTH = 8
_MAX_COUNT = 1 << 53  # of messages; also an integer that every JSON parser can represent


class InvalidMessage(Exception):
    """An authenticated agent sent a message that this version does not understand."""


def parse_frame(payload: bytes, schema: Schema) -> tuple[int, int, Optional[Message]]:
    """Number of the message, number of the last message that the sender received, and the message.

    The message is None for a heartbeat, whose number is 0. Raises InvalidMessage.
    """
    try:
        frame = parse_json(payload, max_bytes=MAX_FRAME_BYTES, max_depth=_MAX_DEPTH)
    except ValueError as error:
        raise InvalidMessage(str(error)) from None
    if not (isinstance(frame, list) and len(frame) == 3 and _is_count(frame[0]) and _is_count(frame[1])):
        raise InvalidMessage("not a list of two numbers and a message")
    number, acknowledged, message = frame
    return number, acknowledged, check_message(message, schema) if number else None


def check_message(message: Any, schema: Schema) -> Message:
    """Return the message if it is valid. Raises InvalidMessage."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise InvalidMessage("a message without a type")
    message_type = message["type"]
    checks = schema.get(message_type)
    if checks is None:
        raise InvalidMessage(f"unknown type {message_type[:40]!r}")
    if set(message) != {"type", *checks}:
        raise InvalidMessage(f"{message_type} must have the values {', '.join(sorted(checks))}")
    for name, is_valid in checks.items():
        if not is_valid(message[name]):
            raise InvalidMessage(f"{message_type} has an invalid value of {name!r}")
    return message


def _is_line(value: Any) -> bool:
    """Text without line breaks, control characters and unpaired surrogates, so that it can be part of a file."""
    return isinstance(value, str) and value.isprintable()


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_COUNT


def _is_count(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_time(value: Any) -> bool:
    """A time or a duration in seconds."""
    return _is_int(value) or (isinstance(value, float) and abs(value) <= _MAX_COUNT)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def _object_of(checks: Mapping[str, Check]) -> Check:
    def is_valid(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and set(value) == set(checks)
            and all(check(value[name]) for name, check in checks.items())
        )

    return is_valid


def _is_end_reason(value: Any) -> bool:
    return isinstance(value, str) and any(value == reason.value for reason in EndReason)


def _is_stacks(value: Any) -> bool:
    """Positions by rank."""
    return isinstance(value, dict) and all(
        rank.isascii() and rank.isdigit() and len(rank) < 10 and isinstance(position, str)
        for rank, position in value.items()
    )


_END_CHECKS: dict[str, Check] = {
    "reason": _is_end_reason,
    "message": _is_string,
    "exit_code": _optional(_is_int),
    "signal": _optional(_is_string),
    "rank": _optional(_is_count),
    "node": _optional(_is_string),
    "traceback": _is_string,
    "last_lines": _is_string,
    "processes_left": _optional(_is_count),
}
_TAIL_CHECKS: dict[str, Check] = {
    "lines": _list_of(_is_string),
    "traceback": _is_string,
    "error": _is_string,
    "is_final": _is_bool,
}
_is_end = _object_of(_END_CHECKS)
_is_tail = _object_of(_TAIL_CHECKS)
_is_node = _object_of({"name": _is_line, "address": _is_line})
_is_registration = _object_of({"node": _is_node, "ports": _list_of(_is_line), "host": _is_line})
_has_rank_end_fields = _object_of(
    {
        "rank": _is_count,
        "title": _is_string,
        "decides": _is_bool,
        "node": _is_string,
        "exit_code": _is_int,
        "at": _is_time,
        "oom": _is_bool,
        "tail": _optional(_is_tail),
        "wrote_at": _is_time,
    }
)


def _is_rank_end(value: Any) -> bool:
    """A rank that failed has the end of its log, which explains the failure."""
    return _has_rank_end_fields(value) and (value["exit_code"] == 0 or value["tail"] is not None)


FROM_MEMBER: Schema = {
    "register": {"registration": _is_registration, "boot_id": _is_line, "now": _is_time},
    "rank_ended": {"end": _is_rank_end},
    "node_ended": {"processes_left": _is_count},
    "end": {"end": _is_end, "at": _is_time},
    "idle": {"seconds": _is_time},
    "stacks": {"number": _is_count, "ranks": _is_stacks},
}
FROM_LEAD: Schema = {
    "nodes": {"registrations": _list_of(_is_registration)},
    "end": {"end": _is_end, "at": _is_time},
    "dump_stacks": {"number": _is_count},
    "run_daemon": {"command": _is_string, "prefix": _is_string},
}
