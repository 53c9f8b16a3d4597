"""Unit tests of worker parts: request heads, chunked bodies, counters, schemas."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.scoring import counters, onnx_model, schema
from runyard.scoring.chunked_body import ChunkedBody
from runyard.scoring.counters import Counter
from runyard.scoring.entry_script import EntryScript
from runyard.scoring.onnx_model import InputMismatch, OnnxModel
from runyard.scoring.request_head import HttpError, parse


def test_a_request_head_is_parsed() -> None:
    head = parse(
        b"POST /sc%6Fre?a=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nAuthorization: bearer  secret\r\n"
        b"X-Request-Id: abc-1\r\nAccept: a\r\naccept: b"
    )
    assert (head.method, head.path, head.query, head.length, head.chunked) == ("POST", "/score", "a=1", 12, False)
    assert (head.token, head.request_id, head.keep_alive) == ("secret", "abc-1", True)
    assert head.headers["accept"] == "a, b"


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.1\r\nConnection: close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive", True),
    ],
)
def test_keep_alive_follows_the_request(head: bytes, keep_alive: bool) -> None:
    assert parse(head).keep_alive is keep_alive


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/3", 505),
        (b"G\xffT / HTTP/1.1", 400),
        (b"GET /\xc3\xa9 HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nspace : x", 400),
        (b"GET / HTTP/1.1\r\n folded: x", 400),
        (b"GET / HTTP/1.1\r\na: b\nc: d", 400),
        (b"GET / HTTP/1.1\r\na: b\0", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1, 1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", 501),
    ],
)
def test_ambiguous_request_heads_are_rejected(head: bytes, status: int) -> None:
    with pytest.raises(HttpError) as caught:
        parse(head)
    assert caught.value.status == status


@settings(deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(1, 9), min_size=1),
    st.binary(max_size=9),
)
def test_a_chunked_body_does_not_depend_on_packet_sizes(parts: list[bytes], sizes: list[int], after: bytes) -> None:
    stream = b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nTrailer: x\r\n\r\n" + after
    chunks, position, packet, rest = ChunkedBody(10_000, "too large"), 0, 0, None
    while rest is None:
        size = sizes[packet % len(sizes)]
        rest = chunks.feed(stream[position : position + size])
        position, packet = position + size, packet + 1
    assert bytes(chunks.body) == b"".join(parts)
    assert rest + stream[position:] == after


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"zz\r\n", 400),
        (b"-1\r\n", 400),
        (b"0x5\r\n", 400),
        (b"\r\n", 400),
        (b"2\r\nabc\r\n", 400),
        (b"1" * 2000, 400),
        (b"ffff\r\n", 413),
    ],
)
def test_malformed_chunks_are_rejected(data: bytes, status: int) -> None:
    with pytest.raises(HttpError) as caught:
        ChunkedBody(100, "too large").feed(data)
    assert caught.value.status == status


@settings(deadline=None)
@given(st.integers(0, (1 << 36) - 1))
def test_every_latency_has_a_matching_bucket(microseconds: int) -> None:
    bucket = counters.bucket_of(microseconds)
    below = counters.upper_edge(bucket - 1) if bucket else 0
    assert below <= microseconds < counters.upper_edge(bucket)
    assert counters.upper_edge(bucket) - below <= max(1, below / 8)


def test_counters_are_readable_by_another_process(tmp_path: Path) -> None:
    counter = Counter(tmp_path / "2-0")
    for milliseconds in range(1, 101):
        counter.record(200, milliseconds / 1e3, 10, 20)
    counter.record(404, 0.001, 0, 0)
    counter.record(503, 0.001, 0, 0)
    counter.record(500, 0.001, 0, 0)
    [(version, slot, numbers)] = list(counters.read(tmp_path))
    assert (version, slot, numbers[counters.REQUESTS], numbers[counters.OK]) == (2, 0, 103, 100)
    assert (numbers[counters.CLIENT_ERROR], numbers[counters.FAILED], numbers[counters.REJECTED]) == (1, 1, 1)
    assert counters.percentile(numbers, 0.5) == pytest.approx(0.049, rel=0.08)
    assert counters.percentile(numbers, 0.99) == pytest.approx(0.099, rel=0.08)
    text = counters.prometheus("digits", tmp_path)
    assert 'runyard_service_requests_total{service="digits",version="2",result="ok"} 100' in text
    assert 'runyard_service_latency_seconds_count{service="digits",version="2"} 103' in text
    replacement = Counter(tmp_path / "2-0")  # a replaced worker continues its counter
    replacement.record(200, 0.001, 0, 0)
    assert counters.total(row for _, _, row in counters.read(tmp_path))[counters.REQUESTS] == 104


def test_sample_values_define_the_schema() -> None:
    @schema.input_schema("who", schema.StandardPythonParameterType({"name": "a", "age": 1, "tall": True}))
    @schema.input_schema("more", schema.StandardPythonParameterType([1.5]), optional=True)
    @schema.output_schema(schema.StandardPythonParameterType("text"))
    def run(who: dict[str, object], more: list[float] | None = None) -> str:
        return f"{who['name']} {more}"

    signature = schema.signature_of(run)
    assert signature is not None
    good = {"who": {"name": "b", "age": 2, "tall": False}}
    assert run(**signature.arguments(json.dumps(good).encode())) == "b None"
    assert run(**signature.arguments(json.dumps({**good, "more": [1, 2]}).encode())) == "b [1.0, 2.0]"
    for wrong, message in (
        ({"who": {"name": "b", "age": True, "tall": False}}, "expected an integer"),
        ({"who": {"name": "b", "age": 2}}, "missing 'tall'"),
        ({"who": [1]}, "expected an object"),
        ({**good, "more": "x"}, "expected a list"),
        ({}, "missing 'who'"),
    ):
        with pytest.raises(schema.Mismatch, match=message):
            signature.arguments(json.dumps(wrong).encode())
    document = signature.input_schema()
    assert document["required"] == ["who"]
    assert document["properties"]["who"]["properties"]["tall"] == {"type": "boolean", "example": True}


def test_a_data_frame_is_deserialized() -> None:
    import pandas

    kind = schema.PandasParameterType(pandas.DataFrame({"a": [1], "b": ["x"]}))
    frame = kind.deserialize_input([{"a": 2, "b": "y"}, {"a": 3, "b": "z"}])
    assert list(frame["a"]) == [2, 3]
    for wrong in ([{"a": 1}], [{"a": "no", "b": "y"}], [[1, 2, 3]], 5):
        with pytest.raises(schema.Mismatch):
            kind.deserialize_input(wrong)
    assert kind.input_to_swagger()["items"]["required"] == ["a", "b"]


@pytest.mark.parametrize("body", ["raise ValueError(text)", "raise SystemExit(3)"])
def test_a_failed_request_is_answered_although_the_log_cannot_be_written(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "score_full.py").write_text(f"def init(): pass\ndef run(text): {body}\n")
    script = EntryScript(tmp_path / "score_full.py")

    def write(text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", SimpleNamespace(write=write, flush=lambda: None))
        responses = [script.score(parse(b"POST /score HTTP/1.1"), b"{}", "r1"), onnx_model.failed("r1")]
    assert [response.status for response in responses] == [500, 500]


@pytest.mark.parametrize(
    ("dtype", "body", "fits"),
    [
        ("uint8", "[0, 255]", True),
        ("uint8", "[2.0]", True),
        ("uint8", "[300]", False),
        ("uint8", "[-1]", False),
        ("int8", "[200.0]", False),
        ("int64", "[9223372036854775807, -9223372036854775808]", True),
        ("int64", "[9223372036854775808]", False),
        ("int64", "[]", True),
    ],
)
def test_numbers_out_of_range_for_an_onnx_input_are_rejected(
    dtype: str, body: str, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = SimpleNamespace(name="x", type=f"tensor({dtype})", shape=["n"])
    session = SimpleNamespace(get_inputs=lambda: [tensor], get_outputs=lambda: [tensor])
    runtime = SimpleNamespace(
        SessionOptions=SimpleNamespace,
        InferenceSession=lambda *args, **kwargs: session,
        get_available_providers=lambda: ["CPUExecutionProvider"],
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    model = OnnxModel(Path("net.onnx"), threads=1)
    if fits:
        assert model.arrays(body.encode())["x"].tolist() == json.loads(body)
    else:
        with pytest.raises(InputMismatch, match=f"'x': values out of range for {dtype}"):
            model.arrays(body.encode())
