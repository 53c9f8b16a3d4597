"""The frames between the yard and a host: a host that is compromised or confused cannot break the yard's reader."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.compute.ssh.framing import ConnectionLost, FrameWriter, read_frame

HEADS = st.dictionaries(st.text(), st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text()).filter(
    lambda head: "bytes" not in head
)


@settings(max_examples=40)
@given(st.lists(st.tuples(HEADS, st.binary())))
def test_frames_are_read_as_they_were_written(frames: list[tuple[dict[str, Any], bytes]]) -> None:
    stream = io.BytesIO()
    writer = FrameWriter(stream)
    for head, body in frames:
        writer.write(head, body)
    stream.seek(0)
    for head, body in frames:
        expected = {**head, "bytes": len(body)} if body else head
        assert read_frame(stream) == (expected, body)
    assert read_frame(stream) is None


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"null",
        b"[" * 3000,
        b'{"bytes": Infinity}',
        b'{"bytes": -1}',
        b'{"bytes": "x"}',
        b'{"bytes": 99999999999999}',
        b'{"bytes": 1e999}',
        b"9" * 5000,
    ],
)
def test_an_invalid_head_ends_the_connection(line: bytes) -> None:
    with pytest.raises(ConnectionLost, match="invalid frame"):
        read_frame(io.BytesIO(line + b"\nxxx"))


@given(
    st.binary() | st.recursive(st.none() | st.floats() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_bytes_raise_another_exception(data: bytes) -> None:
    with suppress(ConnectionLost):
        read_frame(io.BytesIO(data + b"\n"))
