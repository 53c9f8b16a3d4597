from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.posix import atomic_write


def test_a_written_file_is_private_and_leaves_no_draft(tmp_path: Path) -> None:
    atomic_write.write_text(tmp_path / "file", "ä\udcff")
    assert (tmp_path / "file").read_bytes() == "ä".encode() + b"\xff"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write() -> None:
        with atomic_write.replace_file(path, durable=True) as draft:
            draft.write_text("part of the new content")
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        write()
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_another_process_created_first_is_kept(tmp_path: Path) -> None:
    with atomic_write.create_folder(tmp_path / "folder") as draft:
        (draft / "file").write_text("mine")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "file").write_text("theirs")
    assert (tmp_path / "folder" / "file").read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_only_drafts_of_other_processes_are_stale(tmp_path: Path) -> None:
    draft = atomic_write.draft_path(tmp_path / "file")
    stale = tmp_path / draft.name.replace(f".{os.getpid()}.", ".1.")
    for path in (draft, stale):
        path.touch()
    atomic_write.remove_stale_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == [draft]
    assert atomic_write.is_draft(draft.name)
