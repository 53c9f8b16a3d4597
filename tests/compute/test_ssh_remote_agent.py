"""Both ends of a session with a host, without a network: the `ssh` command runs everything on this machine."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runyard.compute.base import Capacity
from runyard.compute.local.compute import LocalCompute, agent_status
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.framing import ConnectionLost
from runyard.compute.ssh.host import FollowedRun, Host
from runyard.compute.ssh.openssh import Address, control_path
from runyard.compute.ssh.remote_agent import Builder
from runyard.compute.ssh.session import Session
from runyard.environments.node_package import create_node_package
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node, WorkOrder
from runyard.posix.unix_socket import is_open
from runyard.spec.folder import RunFolder
from support import a_home, eventually

SSH = """#!/bin/sh
how=""
while [ "$1" != "--" ]; do
    if [ "$1" = "-O" ]; then how="$2"; fi
    shift
done
if [ -n "$how" ]; then echo "$how" >> {log}; exit 0; fi
shift 2
exec sh -c "$*"
"""
LOG = "azureml-logs/70_driver_log.txt"
COUNTING = ("sh", "-c", 'n=0; while :; do n=$((n + 1)); echo "$WHICH $n"; sleep 0.01; done')


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        program = folder / "local-ssh"
        program.write_text(SSH.format(log=folder / "closed"))
        program.chmod(0o755)
        monkeypatch.setenv("RUNYARD_SSH", str(program))
        yield folder


@pytest.fixture(scope="module")
def node_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_node_package(tmp_path_factory.mktemp("kit"))


class LossyHost(Host):
    """The reply of one operation never arrives."""

    lost_operation = ""

    def call(self, operation: str, **arguments: Any) -> Any:
        result = super().call(operation, **arguments)
        if operation == self.lost_operation:
            raise ComputeTargetException(f"the connection to {self.name} was lost", transient=True)
        return result


@pytest.fixture
def create_host(home: Path, node_kit: Path) -> Iterator[Callable[..., LossyHost]]:
    """`create_host('a')` has its files in a folder of that name."""
    hosts: list[LossyHost] = []

    def create(name: str, folder: str = "") -> LossyHost:
        hosts.append(LossyHost(Address(name), home=home, kit=node_kit, folder=str(home / (folder or name))))
        return hosts[-1]

    yield create
    for host in hosts:
        for run in (home / host.name).glob("yards/*/runs/*"):
            with suppress(ComputeTargetException):
                host.call("stop", run_id=run.name, reason="canceled", attempt=None)
            eventually(lambda run=run: agent_status(RunFolder(run)) is None, "the agent exits")
        host.close()


def test_a_command_that_hangs_on_a_host_is_killed(create_host: Callable[..., LossyHost]) -> None:
    code, _, stderr = create_host("a").run_command(["sleep", "600"], timeout_s=0.2)
    assert (code, stderr) == (124, "sleep: no response within 0.2 s")


def test_closing_a_session_lets_other_sessions_finish(home: Path, create_host: Callable[..., LossyHost]) -> None:
    host = create_host("a")
    host.connect()
    host.close()
    eventually((home / "closed").exists, "the connection is closed")
    assert (home / "closed").read_text() == "stop\n"


def test_a_session_ends_if_a_message_cannot_be_processed(
    home: Path, node_kit: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()

    def on_message(head: dict[str, Any], body: bytes) -> None:
        raise KeyError("unexpected")

    address = Address("a")
    session = Session(address, control_path(home, address), str(home / "a"), node_kit, "y", on_message, ended.set)
    assert ended.wait(10)
    with pytest.raises(ConnectionLost):
        session.request("missing_contents", {"digests": []})
    assert "a: a message could not be processed" in caplog.text


@pytest.mark.real
def test_a_host_is_reconnected_after_an_unexpected_error(
    home: Path, create_host: Callable[..., LossyHost], caplog: pytest.LogCaptureFixture
) -> None:
    host = create_host("a")
    session = host.connect()
    host.follow("run", FollowedRun(home / "run", 0))
    shutil.rmtree(home / "ssh")
    (home / "ssh").write_text("in the way")
    session.kill()
    eventually(lambda: "FileExistsError" in caplog.text, "the first attempt fails")
    (home / "ssh").unlink()
    eventually(lambda: session.has_ended and host.unreachable_s == 0, "the host is connected again")


def test_a_run_whose_folder_cannot_be_read_does_not_block_others(
    home: Path, create_host: Callable[..., LossyHost]
) -> None:
    host = create_host("a")
    runs = Path(host.facts["home"]) / "runs"
    for run_id in ("bad", "good"):
        (runs / run_id / "azureml-logs").mkdir(parents=True)
        host.follow(run_id, FollowedRun(home / run_id, 0))
    (runs / "bad" / "agent.lock").symlink_to("agent.lock")  # opening it raises OSError
    host.call("follow", run_id="bad", node_rank=0, received={})
    try:
        for _ in range(2):
            with open(runs / "good" / LOG, "a") as log:
                log.write("a line\n")
            eventually(lambda: text(home / "good" / LOG) == text(runs / "good" / LOG), "the line arrives")
    finally:
        (runs / "bad" / "agent.lock").unlink()


def test_a_session_without_runs_does_not_replace_the_sockets(home: Path, create_host: Callable[..., LossyHost]) -> None:
    host, other = create_host("a"), create_host("b", folder="a")
    sockets = [Path(host.facts["home"]) / name for name in ("yard.sock", "bell.sock")]
    host.follow("run", FollowedRun(home / "run", 0))
    eventually(lambda: all(path.exists() for path in sockets), "the sockets exist")
    before = [path.stat().st_ino for path in sockets]
    assert other.facts["home"] == host.facts["home"]
    other.call("missing_contents", digests=[])
    other.close()
    assert [path.stat().st_ino for path in sockets] == before
    assert all(is_open(path) for path in sockets)


@pytest.mark.real
def test_a_remote_agent_reopens_sockets_that_another_one_replaced(
    home: Path, create_host: Callable[..., LossyHost]
) -> None:
    older, newer = create_host("a"), create_host("b", folder="a")
    sockets = [Path(older.facts["home"]) / name for name in ("yard.sock", "bell.sock")]
    older.follow("one", FollowedRun(home / "one", 0))
    eventually(lambda: all(path.exists() for path in sockets), "the sockets exist")
    before = [path.stat().st_ino for path in sockets]
    newer.connect()
    newer.follow("two", FollowedRun(home / "two", 0))
    eventually(
        lambda: all(p.stat().st_ino != ino for p, ino in zip(sockets, before)), "the newer one has replaced them"
    )
    newer.close()
    eventually(lambda: all(is_open(path) for path in sockets), "the older one has reopened them", 10)
    with socket.socket(socket.AF_UNIX) as script:
        script.connect(str(sockets[0]))


def test_a_lost_host_does_not_write_into_the_next_attempt(
    home: Path, create_host: Callable[..., LossyHost], node_kit: Path
) -> None:
    compute = create_compute([create_host("a"), create_host("b")], home, node_kit)
    compute.start(order(home, "a", attempt=1))
    eventually(lambda: "a 9" in text(home / "run" / LOG), "the first attempt writes")
    compute.start(order(home, "b", attempt=2))
    eventually(lambda: "b 50\n" in text(home / "run" / LOG), "the second attempt writes")
    lines = text(home / "run" / LOG).partition("--- attempt 2: retried ---\n")[2].split("\n")[:-1]
    assert len(lines) >= 50
    assert lines == [f"b {number}" for number in range(1, len(lines) + 1)]


def test_an_agent_whose_start_was_not_confirmed_is_stopped(
    home: Path, create_host: Callable[..., LossyHost], node_kit: Path
) -> None:
    host = create_host("a")
    host.lost_operation = "start_agent"
    compute = create_compute([host], home, node_kit)
    with pytest.raises(ComputeTargetException, match="was lost"):
        compute.start(order(home, "a"))
    folder = RunFolder(Path(host.facts["home"]) / "runs" / "run")
    assert json.loads(folder.stop.read_bytes()) == {"reason": "launch failed"}
    eventually(lambda: agent_status(folder) is None and folder.events.exists(), "its agent exits")


def test_a_delayed_stop_request_does_not_end_the_next_attempt(
    home: Path, create_host: Callable[..., LossyHost], node_kit: Path
) -> None:
    host = create_host("a")
    compute = create_compute([host], home, node_kit)
    handle = compute.start(order(home, "a", attempt=2))
    folder = RunFolder(Path(host.facts["home"]) / "runs" / "run")
    host.call("stop", run_id="run", reason="node lost", attempt=1)
    assert not folder.stop.exists()
    compute.stop(handle)
    eventually(lambda: agent_status(folder) is None, "its own stop request ends it")


def test_a_host_that_stopped_a_lost_attempt_can_run_the_next_one(
    home: Path, create_host: Callable[..., LossyHost], node_kit: Path
) -> None:
    host = create_host("a")
    compute = create_compute([host], home, node_kit)
    compute.start(order(home, "a", attempt=1))
    host.call("stop", run_id="run", reason="node lost", attempt=1)
    folder = RunFolder(Path(host.facts["home"]) / "runs" / "run")
    eventually(lambda: agent_status(folder) is None, "the first attempt ends")
    compute.start(order(home, "a", attempt=2))
    eventually(lambda: "a 9\n" in text(home / "run" / LOG).partition("--- attempt 2")[2], "the second attempt runs")


def test_a_builder_that_died_does_not_fail_requests_of_its_successor(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = []
    resume = threading.Event()

    def on_message(message: dict[str, Any]) -> None:
        replies.append(message)
        if message["id"] == 1:
            resume.wait(30)

    builder = Builder(tmp_path, on_message)
    try:
        builder.prepare(request(tmp_path, 1), "")
        eventually(lambda: replies, "the first reply arrives, and its reader is blocked")
        assert builder._process is not None
        builder._process.kill()
        builder._process.wait()
        builder.prepare(request(tmp_path, 2), "")
        resume.set()
        eventually(lambda: any(reply["id"] == 2 for reply in replies), "the second reply arrives")
        assert "exited with code" not in str(replies)
    finally:
        builder.close()


def create_compute(hosts: list[LossyHost], home: Path, node_kit: Path) -> SshCompute:
    return SshCompute(hosts, [Capacity(1, 1.0)] * len(hosts), kit=node_kit, local=LocalCompute(home))


def order(home: Path, node: str, attempt: int = 1) -> WorkOrder:
    variables = {"PATH": "/usr/bin:/bin", "WHICH": node}
    folder = str(home / "run")
    return WorkOrder("run", folder, COUNTING, variables, grace_s=1.0, nodes=(Node(node),), attempt=attempt)


def request(folder: Path, number: int) -> dict[str, Any]:
    spec = {"python": {"interpreter_path": "/nowhere/python", "user_managed_dependencies": True}}
    return {"id": number, "spec": spec, "run_id": "run", "run_folder": str(folder / "run"), "kit": str(folder)}


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
