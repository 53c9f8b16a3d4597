from __future__ import annotations

from pathlib import Path

import pytest

from runyard.tracking import logs
from runyard.tracking.logs import log_sizes, search_log


@pytest.mark.parametrize("piece", [8, 64, 1 << 22], ids=["cut in lines", "cut between", "whole"])
def test_lines_are_found_with_place_and_number(tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_SEARCHED_BYTES", piece)
    path = tmp_path / "log.txt"
    lines = [f"step {number} {'LOSS' if number % 10 == 0 else 'x'}" for number in range(100)]
    path.write_text("\n".join(lines))
    found = search_log(path, "loss")
    assert [line.text for line in found] == [line for line in lines if "LOSS" in line]
    content = path.read_bytes()
    for line in found:
        assert content[line.offset :].startswith(line.text.encode())
        assert lines[line.line - 1] == line.text


def test_a_line_is_found_once_and_no_more_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("error error error\n" * 50)
    assert [line.line for line in search_log(path, "ERROR", limit=3)] == [1, 2, 3]


def test_bytes_that_are_no_text_are_searched_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\xff\xfe ok \x00\n\xc3\xa9t\xc3\xa9\n")
    assert search_log(path, "été")[0].line == 2
    assert search_log(path, "ok")[0].line == 1
    assert search_log(path, "") == []


def test_the_sizes_of_the_logs_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "folder").mkdir()
    assert log_sizes(tmp_path) == {"a.txt": 3}
    assert log_sizes(tmp_path / "nothing") == {}
