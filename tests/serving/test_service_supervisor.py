"""SupervisorClient, workers and validation, without a yard."""

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
from runyard.serving import supervisor as supervisor_module
from runyard.serving.supervisor_client import SupervisorClient, free_port
from runyard.spec.json import to_json
from runyard.spec.service import DesiredState, ServiceFolder, WorkerOrder
from support import lock_holder


@pytest.fixture
def supervisor(tmp_path: Path) -> SupervisorClient:
    return SupervisorClient(ServiceFolder(tmp_path))


def desired_state(**values: object) -> DesiredState:
    port = free_port("127.0.0.1", 0, {})
    state = DesiredState(0, "svc", "127.0.0.1", port, 1, True, ("first-key", "second-key"), {})
    return replace(state, **values)  # type: ignore[arg-type]


def test_a_supervisor_that_has_just_started_is_stopped_too(supervisor: SupervisorClient) -> None:
    supervisor.apply(desired_state())
    stopping = threading.Thread(target=supervisor.stop, daemon=True)
    stopping.start()
    stopping.join(20)
    assert not stopping.is_alive()
    assert lock_holder(supervisor.folder.lock) is None


def test_nothing_is_started_for_a_service_deleted_during_deployment(supervisor: SupervisorClient) -> None:
    canceled = threading.Event()
    canceled.set()
    with pytest.raises(WebserviceException, match="was deleted during its deployment"):
        deployment.bring_up(supervisor, desired_state(traffic={"1": 100}), 1, {}, lambda text: None, canceled)
    assert not supervisor.folder.supervisor_log.exists()


def test_a_stopped_service_is_not_restarted_by_the_monitor(supervisor: SupervisorClient) -> None:
    supervisor.store(desired_state(traffic={"1": 100}))
    supervisor.stop()
    assert not supervisor.ensure_running()
    assert not supervisor.folder.supervisor_log.exists()


def test_a_replaced_key_survives_another_change(supervisor: SupervisorClient) -> None:
    before = desired_state()
    supervisor.store(before)
    try:
        supervisor.change(lambda state: validation.with_key(state, 0, "renewed-key"))
        supervisor.apply(replace(before, workers=2))
        state = supervisor.desired_state()
    finally:
        supervisor.stop()
    assert state is not None
    assert (state.keys, state.workers) == (("renewed-key", "second-key"), 2)


def test_an_early_reload_signal_does_not_end_a_supervisor(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from runyard.serving import supervisor
class Early:
    def __init__(self, folder): os.kill(os.getpid(), signal.SIGHUP)
    def run(self): pass
supervisor.Supervisor = Early
sys.exit(supervisor.main(sys.argv[1]))
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=False).returncode == 0


def test_a_full_disk_does_not_end_a_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, written, errors = supervisor_module.Supervisor(ServiceFolder(tmp_path)), [], [errno.ENOSPC]

    def write_text(path: Path, text: str) -> None:
        if errors:
            raise OSError(errors.pop(), "the disk is full")
        written.append(path)

    monkeypatch.setattr(supervisor_module, "write_text", write_text)
    supervisor._write_status()
    assert written == []
    supervisor._write_status()  # retried when there is space
    assert written == [tmp_path / "found.json"]
    supervisor._error, errors[:] = "changed", [errno.ENOENT]
    with pytest.raises(FileNotFoundError):  # the service was deleted
        supervisor._write_status()


def test_starting_a_worker_is_retried_for_days_on_an_overloaded_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_start(*args: object, **kwargs: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(workers, "spawn", fail_to_start)
    folder, state = ServiceFolder(tmp_path), desired_state()
    folder.version(1).mkdir(parents=True)
    folder.order(1).write_text(json.dumps(to_json(WorkerOrder(("python",), {}, "score.py"))))
    (folder.version(1) / "served").touch()
    version = workers.Version(folder, 1, 1)
    with socket.socket() as listener:
        for _ in range(1100):
            version.start_missing(state, listener, is_primary=True, now=float("inf"))
    (slot,) = version.slots()
    assert not version.has_failed
    assert 0 < slot.not_before - time.monotonic() <= 30


def test_a_failing_service_does_not_stop_the_monitoring_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_POLL_S", 0.001)
    stopped, names = threading.Event(), []

    def supervisor(name: str) -> None:
        names.append(name)
        if name == "second":
            stopped.set()
        raise OSError(28, "no space left")

    records = [SimpleNamespace(name="first"), SimpleNamespace(name="second")]
    services = SimpleNamespace(store=SimpleNamespace(all=lambda: records), supervisor=supervisor)
    thread = monitor.ServiceMonitor(services, stopped)  # type: ignore[arg-type]
    thread.start()
    thread.join(20)
    assert names[:2] == ["first", "second"]


def test_a_key_that_does_not_fit_into_a_header_is_rejected() -> None:
    assert validation.validate_key("long-enough") == "long-enough"
    with pytest.raises(UserErrorException, match="ASCII"):
        validation.validate_key("schlüssel-ä")


def test_a_second_version_is_rejected_if_its_socket_path_is_too_long() -> None:
    validation.validate_socket_path("svc", Path("/" + "x" * 106))
    with pytest.raises(WebserviceException, match="longer than 107 bytes"):
        validation.validate_socket_path("svc", Path("/" + "x" * 107))
