from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.posix import namespaces


def exit_code_of(action: Callable[[], None]) -> int:
    """Run ``action`` in a forked child; 77 if the machine does not allow it."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except PermissionError:
            os._exit(77)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_host_name_applies_to_the_process_only() -> None:
    def rename() -> None:
        namespaces.set_host_name("node-7")
        assert socket.gethostname() == "node-7"

    before = socket.gethostname()
    code = exit_code_of(rename)
    if code == 77:
        pytest.skip("this machine does not allow namespaces")
    assert code == 0
    assert socket.gethostname() == before


@pytest.mark.skipif(os.getuid() != 0, reason="requires root")
def test_read_only_folders_stay_writable_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    work.mkdir()
    monkeypatch.setenv("TMPDIR", str(work))

    def write() -> None:
        namespaces.mount_read_only([str(data), str(tmp_path)], writable=str(work))
        (work / "file").touch()
        try:
            (data / "file").touch()
        except OSError:
            return
        raise PermissionError("mounts are not allowed")

    code = exit_code_of(write)
    if code == 77:
        pytest.skip("this machine does not allow mounts")
    assert code == 0
    (data / "file").touch()
