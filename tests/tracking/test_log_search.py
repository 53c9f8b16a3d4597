from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from runyard.tracking import log_search
from runyard.tracking.log_search import LogMatch, search_log
from runyard.tracking.logs import log_sizes


@pytest.mark.parametrize("chunk_bytes", [8, 64, 1 << 22], ids=["smaller than a line", "several lines", "complete file"])
def test_matches_have_offset_and_line_number(tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "_SEARCH_BYTES", chunk_bytes)
    path = tmp_path / "log.txt"
    lines = [f"step {number} {'LOSS' if number % 10 == 0 else 'x'}" for number in range(100)]
    path.write_text("\n".join(lines))
    matches = search_log(path, "loss")
    assert [match.text for match in matches] == [line for line in lines if "LOSS" in line]
    content = path.read_bytes()
    for match in matches:
        assert content[match.offset :].startswith(match.text.encode())
        assert lines[match.line - 1] == match.text


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1 << 19])
@pytest.mark.parametrize("text", ["ab", "a*", "*", "[x", "{x", " ", "a", "ö", "abab"])
def test_results_equal_those_of_a_search_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, text: str
) -> None:
    monkeypatch.setattr(log_search, "_SEARCH_BYTES", chunk_bytes)
    choose = random.Random(text + str(chunk_bytes)).choices
    content = b"".join(
        choose([b"a", b"A", b"b", b"B", b"*", b"\n", b" ", b"[", b"{", b"X", "ö".encode(), b"\0"], k=3000)
    )
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    expected, offset = [], 0
    for number, line in enumerate(content.split(b"\n"), 1):
        if text.encode().lower() in line.lower():
            expected.append(LogMatch(offset, number, line.decode("utf-8", "replace")))
        offset += len(line) + 1
    assert search_log(path, text, limit=10_000) == expected
    assert search_log(path, text, limit=3) == expected[:3]


def test_a_text_of_several_lines_matches_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("a\nb\n")
    assert search_log(path, "a\nb") == []


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "folder"])
def test_a_log_that_was_replaced_has_no_lines(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other.txt").write_text("secret")
    path = tmp_path / "log.txt"
    if kind == "link":
        path.symlink_to(tmp_path / "other.txt")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert search_log(path, "secret") == []


def test_a_long_line_matches_once_and_its_text_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"first\n" + b"x" * 3_000_000 + b"needle" + b"y" * 3_000_000 + b"needle\nneedle")
    first, second = search_log(path, "needle")
    assert (first.line, first.offset, len(first.text)) == (2, 6, 2000)
    assert (second.line, second.text) == (3, "needle")


def test_each_line_matches_once_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("error error error\n" * 50)
    assert [match.line for match in search_log(path, "ERROR", limit=3)] == [1, 2, 3]


def test_binary_data_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\xff\xfe ok \x00\n\xc3\xa9t\xc3\xa9\n")
    assert search_log(path, "été")[0].line == 2
    assert search_log(path, "ok")[0].line == 1
    assert search_log(path, "") == []


def test_log_sizes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "folder").mkdir()
    assert log_sizes(tmp_path) == {"a.txt": 3}
    assert log_sizes(tmp_path / "nothing") == {}
