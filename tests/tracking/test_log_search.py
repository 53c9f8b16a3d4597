from __future__ import annotations

from pathlib import Path

import pytest

from runyard.tracking import logs
from runyard.tracking.logs import log_sizes, search_log


@pytest.mark.parametrize("chunk_bytes", [8, 64, 1 << 22], ids=["smaller than a line", "several lines", "complete file"])
def test_matches_have_offset_and_line_number(tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_SEARCH_BYTES", chunk_bytes)
    path = tmp_path / "log.txt"
    lines = [f"step {number} {'LOSS' if number % 10 == 0 else 'x'}" for number in range(100)]
    path.write_text("\n".join(lines))
    matches = search_log(path, "loss")
    assert [match.text for match in matches] == [line for line in lines if "LOSS" in line]
    content = path.read_bytes()
    for match in matches:
        assert content[match.offset :].startswith(match.text.encode())
        assert lines[match.line - 1] == match.text


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
