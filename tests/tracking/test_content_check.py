"""Stored files are verified when they are read, at most once per hour and change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard import clock
from runyard.errors import FileCorrupted
from runyard.posix import sha256
from runyard.tracking import content_check
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.content_check import StreamCheck, check_content, is_intact, known_result


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "content"
    path.write_bytes(b"weights" * 1000)
    return path, sha256.of_file(path)


def test_an_intact_file_is_read_once(stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, digest = stored
    check_content(path, digest, "model.pt")
    monkeypatch.setattr(sha256, "of_file", lambda path: pytest.fail("read again"))
    check_content(path, digest, "model.pt")
    assert known_result(path, digest) is True


@pytest.mark.parametrize("damage", ["changed", "truncated", "missing"])
def test_damage_is_an_error_that_names_the_file(stored: tuple[Path, str], damage: str) -> None:
    path, digest = stored
    check_content(path, digest, "model.pt")
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        os.truncate(path, 100)
    else:
        path.write_bytes(b"weightz" * 1000)
    for _ in range(2):
        with pytest.raises(FileCorrupted, match=r"'model\.pt' is damaged"):
            check_content(path, digest, "model.pt")
    assert not is_intact(path, digest)


def test_damage_without_a_trace_is_noticed_after_an_hour(
    stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, digest = stored
    check_content(path, digest, "model.pt")
    status = path.stat()
    path.write_bytes(b"weightz" * 1000)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    now = clock.monotonic()
    monkeypatch.setattr(clock, "monotonic", lambda: now + 3601)
    assert not is_intact(path, digest)


def test_a_stream_is_verified_at_its_end(stored: tuple[Path, str]) -> None:
    path, digest = stored
    for content, result in ((b"weights" * 1000, True), (b"weights" * 999, False)):
        check = StreamCheck(path, digest)
        check.update(content)
        if result:
            check.finish("model.pt")
        else:
            with pytest.raises(FileCorrupted):
                check.finish("model.pt")
        assert known_result(path, digest) is result


def test_the_number_of_remembered_results_is_limited(stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = stored
    monkeypatch.setattr(content_check, "_MAX_REMEMBERED", 2)
    for number in range(5):
        is_intact(path, f"{number:064d}")
    assert len(content_check._results) == 2


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize("size", [7, 3 << 20])
def test_storing_the_same_content_again_repairs_it(database, tmp_path: Path, size: int, move: bool) -> None:
    artifacts = Artifacts(database, tmp_path / "artifacts")
    content = os.urandom(size)
    artifact = artifacts.put_stream("a", "model.pt", [content])
    stored_path = artifacts.content(artifact.digest)
    stored_path.chmod(0o600)
    stored_path.write_bytes(content[:-1])
    source = tmp_path / "again.pt"
    source.write_bytes(content)
    artifacts.store_file("b", "model.pt", source, move=move)
    assert stored_path.read_bytes() == content
