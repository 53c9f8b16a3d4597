from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runyard.posix import procfs
from support import eventually

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="requires /proc")  # noqa: PTH112


def test_facts_about_this_process() -> None:
    process = procfs.Stat(os.getpid())
    assert (process.pid, process.parent, process.session) == (os.getpid(), os.getppid(), os.getsid(0))
    assert process.threads >= 1
    assert process.resident_pages > 0
    assert not process.has_ended
    assert process.start_ticks == procfs.start_ticks(os.getpid())
    assert os.getpid() in procfs.process_ids()
    assert procfs.boot_id() == procfs.boot_id()


def test_a_zombie_has_ended_and_a_missing_process_has_no_facts() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], env={"MARK": "here"})
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    zombie = procfs.stat(process.pid)
    assert zombie is not None
    assert zombie.has_ended
    assert procfs.start_ticks(process.pid) is None
    process.wait()
    assert procfs.stat(process.pid) is None
    assert procfs.start_ticks(process.pid) is None
    assert procfs.environment(process.pid) == b""


def test_the_environment_is_nul_separated() -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"MARK": "here", "PATH": os.environ["PATH"]})
    # before the exec, a vfork child shows no variables
    eventually(lambda: b"\0MARK=here\0" in procfs.environment(process.pid), "the child has its variables")
    process.communicate()
