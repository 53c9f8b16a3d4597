from __future__ import annotations

from pathlib import Path

import pytest

from runyard.tracking.logs import read_log, tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "70_driver_log.txt"


def test_a_log_is_read_in_parts_while_it_grows(log: Path) -> None:
    assert read_log(log, 0, 10) == (b"", 0)
    log.write_bytes(b"first line\n")
    assert read_log(log, 0, 5) == (b"first", 5)
    assert read_log(log, 5, 100) == (b" line\n", 11)
    assert read_log(log, 11, 100) == (b"", 11)
    with log.open("ab") as file:
        file.write(b"\x00\xff\xfe binary\n")
    assert read_log(log, 11, 100) == (b"\x00\xff\xfe binary\n", 22)


def test_negative_offsets_count_from_the_end(log: Path) -> None:
    log.write_bytes(b"0123456789")
    assert read_log(log, -3, 100) == (b"789", 10)
    assert read_log(log, -100, 100) == (b"0123456789", 10)
    assert read_log(log, 50, 100) == (b"", 50)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\nc\n", 5, b"a\nb\nc\n"),
        (b"", 3, b""),
        (b"\n\n\n", 1, b"\n"),
        (b"one line", 1, b"one line"),
    ],
)
def test_the_last_lines(log: Path, text: bytes, lines: int, expected: bytes) -> None:
    log.write_bytes(text)
    assert tail(log, lines) == expected


def test_the_last_lines_of_a_large_log_with_very_long_ones(log: Path) -> None:
    with log.open("wb") as file:
        file.truncate(100 << 20)
        file.seek(0, 2)
        file.write(b"\n" + b"x" * 300_000 + b"\nlast\n")
    assert tail(log, 2) == b"x" * 300_000 + b"\nlast\n"
    assert read_log(log, 100 << 20, 3) == (b"\nxx", (100 << 20) + 3)
