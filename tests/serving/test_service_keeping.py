"""The yard's end of a keeper, and what is refused, without a yard."""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.errors import UserErrorException, WebserviceException
from runyard.serving import deployment, monitor, validation, workers
from runyard.serving.supervisor_client import Keeping, free_port
from runyard.spec.json import to_json
from runyard.spec.service import ServiceFolder, Wanted, WorkerOrder
from support import lock_holder


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    return Keeping(ServiceFolder(tmp_path))


def a_wish(**values: object) -> Wanted:
    port = free_port("127.0.0.1", 0, {})
    wanted = Wanted(0, "svc", "127.0.0.1", port, 1, True, ("first-key", "second-key"), {})
    return replace(wanted, **values)  # type: ignore[arg-type]


def test_a_keeper_that_has_just_started_is_stopped_too(keeping: Keeping) -> None:
    keeping.want(a_wish())
    stopping = threading.Thread(target=keeping.stop, daemon=True)
    stopping.start()
    stopping.join(20)
    assert not stopping.is_alive()
    assert lock_holder(keeping.folder.lock) is None


def test_nothing_is_started_for_a_service_that_was_deleted_meanwhile(keeping: Keeping) -> None:
    ends = threading.Event()
    ends.set()
    with pytest.raises(WebserviceException, match="was deleted while it was deployed"):
        deployment.bring_up(keeping, a_wish(traffic={"1": 100}), 1, {}, lambda text: None, ends)
    assert not keeping.folder.keeper_log.exists()


def test_what_was_stopped_is_not_started_again_by_the_lookout(keeping: Keeping) -> None:
    keeping.keep(a_wish(traffic={"1": 100}))
    keeping.stop()
    assert not keeping.look_after()
    assert not keeping.folder.keeper_log.exists()


def test_a_key_that_was_replaced_stays_so_whoever_wants_something_else(keeping: Keeping) -> None:
    before = a_wish()
    keeping.keep(before)
    try:
        keeping.change(lambda wanted: validation.with_key(wanted, 0, "renewed-key"))
        keeping.want(replace(before, workers=2))
        wanted = keeping.wanted()
    finally:
        keeping.stop()
    assert wanted is not None
    assert (wanted.keys, wanted.workers) == (("renewed-key", "second-key"), 2)


def test_a_change_that_comes_too_early_does_not_end_a_keeper(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from runyard.serving import supervisor as keeper
class Early:
    def __init__(self, folder): os.kill(os.getpid(), signal.SIGHUP)
    def run(self): pass
keeper.Keeper = Early
sys.exit(keeper.main(sys.argv[1]))
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=False).returncode == 0


def test_a_machine_that_has_no_room_for_a_worker_is_asked_again_for_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*words: object, **how: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(workers, "start", no_room)
    folder, wanted = ServiceFolder(tmp_path), a_wish()
    folder.version(1).mkdir(parents=True)
    folder.order(1).write_text(json.dumps(to_json(WorkerOrder(("python",), {}, "score.py"))))
    (folder.version(1) / "served").touch()
    version = workers.Version(folder, 1, 1)
    with socket.socket() as listening:
        for _ in range(1100):
            version.start_missing(wanted, listening, is_first=True, now=float("inf"))
    (place,) = version.everybody()
    assert not version.has_failed
    assert 0 < place.not_before - time.monotonic() <= 30


def test_one_service_that_cannot_be_looked_after_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_LOOK_S", 0.001)
    ended, seen = threading.Event(), []

    def look(name: str) -> None:
        seen.append(name)
        if name == "second":
            ended.set()
        raise OSError(28, "no space left")

    records = [SimpleNamespace(name="first"), SimpleNamespace(name="second")]
    services = SimpleNamespace(store=SimpleNamespace(all=lambda: records), keeping=look)
    watching = monitor.Lookout(services, ended)  # type: ignore[arg-type]
    watching.start()
    watching.join(20)
    assert seen[:2] == ["first", "second"]


def test_a_key_that_no_header_can_hold_is_refused() -> None:
    assert validation.checked_key("long-enough") == "long-enough"
    with pytest.raises(UserErrorException, match="ASCII"):
        validation.checked_key("schlüssel-ä")


def test_a_second_version_is_refused_where_its_socket_has_no_room() -> None:
    validation.checked_socket("svc", Path("/" + "x" * 106))
    with pytest.raises(WebserviceException, match="at most 107 bytes"):
        validation.checked_socket("svc", Path("/" + "x" * 107))
