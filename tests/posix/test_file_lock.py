from __future__ import annotations

import os
from pathlib import Path

from runyard.posix import file_lock


def test_a_lock_excludes_others_and_names_its_holder_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not file_lock.is_held(path)
    assert file_lock.holder(path) is None
    lock = file_lock.acquire(path)
    assert lock is not None
    assert file_lock.is_held(path)
    assert file_lock.holder(path) == os.getpid()
    assert file_lock.acquire(path, timeout_s=0.05) is None
    os.close(lock)
    assert not file_lock.is_held(path)
    assert file_lock.holder(path) is None


def test_a_lock_is_released_when_its_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = os.fork()
    if child == 0:
        file_lock.acquire(path)
        os._exit(0)
    os.waitpid(child, 0)
    lock = file_lock.acquire(path)
    assert lock is not None
    os.close(lock)
