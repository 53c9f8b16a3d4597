"""The two ends of a connection to a host, without a network: an `ssh` that runs the command here."""

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
from runyard.compute.ssh.framing import Cut
from runyard.compute.ssh.host import Followed, Hooks, Host
from runyard.compute.ssh.openssh import Address, control_path
from runyard.compute.ssh.remote_agent import Builder
from runyard.compute.ssh.session import Line
from runyard.compute.ssh.socket_forward import is_heard
from runyard.environments.node_package import kit
from runyard.errors import ComputeTargetException
from runyard.launch.order import Node, WorkOrder
from runyard.spec.folder import RunFolder
from support import a_home, eventually

SSH = """#!/bin/sh
how=""
while [ "$1" != "--" ]; do
    if [ "$1" = "-O" ]; then how="$2"; fi
    shift
done
if [ -n "$how" ]; then echo "$how" >> {said}; exit 0; fi
shift 2
exec sh -c "$*"
"""
LOG = "azureml-logs/70_driver_log.txt"
COUNTING = ("sh", "-c", 'n=0; while :; do n=$((n + 1)); echo "$WHICH $n"; sleep 0.01; done')


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with a_home() as folder:
        program = folder / "ssh-here"
        program.write_text(SSH.format(said=folder / "hung-up"))
        program.chmod(0o755)
        monkeypatch.setenv("RUNYARD_SSH", str(program))
        yield folder


@pytest.fixture(scope="module")
def node_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit(tmp_path_factory.mktemp("kit"))


class Lossy(Host):
    """The answer to what is in ``loses`` never arrives."""

    loses = ""

    def call(self, do: str, **fields: Any) -> Any:
        answer = super().call(do, **fields)
        if do == self.loses:
            raise ComputeTargetException(f"the connection to {self.name} was lost", transient=True)
        return answer


@pytest.fixture
def host(home: Path, node_kit: Path) -> Iterator[Callable[..., Lossy]]:
    """`host('a')`: one that keeps its things in a folder of that name."""
    made: list[Lossy] = []
    hooks = Hooks(lambda run_id: None, lambda run_id, text: None, lambda: None)

    def make(name: str, folder: str = "") -> Lossy:
        made.append(Lossy(Address(name), home=home, kit=node_kit, hooks=hooks, folder=str(home / (folder or name))))
        return made[-1]

    yield make
    for each in made:
        for runs in (home / each.name).glob("yards/*/runs/*"):
            with suppress(ComputeTargetException):
                each.call("stop", run=runs.name, reason="canceled")
            eventually(lambda runs=runs: agent_status(RunFolder(runs)) is None, "the agent ends")
        each.close()


def test_a_command_that_hangs_on_a_host_is_ended_there(host: Callable[..., Lossy]) -> None:
    code, _, complaint = host("a").run(["sleep", "600"], timeout_s=0.2)
    assert (code, complaint) == (124, "sleep: no answer in 0.2 s")


def test_a_connection_that_is_closed_leaves_what_others_share(home: Path, host: Callable[..., Lossy]) -> None:
    closed = host("a")
    closed.connect()
    closed.close()
    eventually((home / "hung-up").exists, "it hangs up")
    assert (home / "hung-up").read_text() == "stop\n"


def test_a_line_on_which_something_is_heard_that_cannot_be_taken_is_cut(
    home: Path, node_kit: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()

    def heard(head: dict[str, Any], body: bytes) -> None:
        raise KeyError("what is this")

    address = Address("a")
    line = Line(address, control_path(home, address), str(home / "a"), node_kit, "y", heard, ended.set)
    assert ended.wait(10)
    with pytest.raises(Cut):
        line.ask("lacking", {"digests": []})
    assert "a: what it said could not be taken" in caplog.text


@pytest.mark.real
def test_a_host_is_connected_again_whatever_went_wrong_the_first_time(
    home: Path, host: Callable[..., Lossy], caplog: pytest.LogCaptureFixture
) -> None:
    one = host("a")
    line = one.connect()
    one.follow("run", Followed(home / "run", 0))
    shutil.rmtree(home / "ssh")
    (home / "ssh").write_text("in the way")
    line.kill()
    eventually(lambda: "FileExistsError" in caplog.text, "it could not be tried")
    (home / "ssh").unlink()
    eventually(lambda: line.is_cut and one.away_s == 0, "it is connected again")


def test_a_run_whose_folder_cannot_be_read_does_not_keep_the_others_waiting(
    home: Path, host: Callable[..., Lossy]
) -> None:
    one = host("a")
    there = Path(one.facts["home"]) / "runs"
    for run_id in ("bad", "good"):
        (there / run_id / "azureml-logs").mkdir(parents=True)
        one.follow(run_id, Followed(home / run_id, 0))
    (there / "bad" / "agent.lock").symlink_to("agent.lock")  # an OSError for whoever opens it
    one.call("follow", run="bad", node_rank=0, have={})
    try:
        for _ in range(2):
            with open(there / "good" / LOG, "a") as log:
                log.write("a line\n")
            eventually(lambda: text(home / "good" / LOG) == text(there / "good" / LOG), "the line comes")
    finally:
        (there / "bad" / "agent.lock").unlink()


def test_whoever_only_looks_at_a_host_leaves_the_sockets_of_its_runs_alone(
    home: Path, host: Callable[..., Lossy]
) -> None:
    keeper, looker = host("a"), host("b", folder="a")
    sockets = [Path(keeper.facts["home"]) / name for name in ("yard.sock", "bell.sock")]
    keeper.follow("run", Followed(home / "run", 0))
    eventually(lambda: all(path.exists() for path in sockets), "there are sockets")
    before = [path.stat().st_ino for path in sockets]
    assert looker.facts["home"] == keeper.facts["home"]
    looker.call("lacking", digests=[])
    looker.close()
    assert [path.stat().st_ino for path in sockets] == before
    assert all(is_heard(path) for path in sockets)


@pytest.mark.real
def test_a_courier_opens_its_sockets_again_when_another_that_took_their_place_has_ended(
    home: Path, host: Callable[..., Lossy]
) -> None:
    stays, goes = host("a"), host("b", folder="a")
    sockets = [Path(stays.facts["home"]) / name for name in ("yard.sock", "bell.sock")]
    stays.follow("one", Followed(home / "one", 0))
    eventually(lambda: all(path.exists() for path in sockets), "there are sockets")
    before = [path.stat().st_ino for path in sockets]
    goes.connect()
    goes.follow("two", Followed(home / "two", 0))
    eventually(lambda: all(p.stat().st_ino != ino for p, ino in zip(sockets, before)), "the newer has taken them")
    goes.close()
    eventually(lambda: all(is_heard(path) for path in sockets), "the older is back", 10)
    with socket.socket(socket.AF_UNIX) as script:
        script.connect(str(sockets[0]))


def test_nobody_is_heard_where_a_socket_was_left_behind(tmp_path: Path) -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        path = tmp_path / str(int(kind))
        assert not is_heard(path)
        with socket.socket(socket.AF_UNIX, kind) as listening:
            listening.bind(str(path))
            if kind == socket.SOCK_STREAM:
                listening.listen()
                listening.setblocking(False)
            assert is_heard(path)
            with pytest.raises(BlockingIOError):  # it did not notice
                listening.accept() if kind == socket.SOCK_STREAM else listening.recv(1, socket.MSG_DONTWAIT)
        assert not is_heard(path)


def test_a_host_that_lost_a_run_does_not_write_into_its_next_attempt(
    home: Path, host: Callable[..., Lossy], node_kit: Path
) -> None:
    compute = on([host("a"), host("b")], home, node_kit)
    compute.start(order(home, "a", attempt=1))
    eventually(lambda: "a 9" in text(home / "run" / LOG), "the first attempt writes")
    compute.start(order(home, "b", attempt=2))
    eventually(lambda: "b 50\n" in text(home / "run" / LOG), "the second attempt writes")
    said = text(home / "run" / LOG).partition("--- attempt 2: tried again ---\n")[2].split("\n")[:-1]
    assert len(said) >= 50
    assert said == [f"b {number}" for number in range(1, len(said) + 1)]


def test_an_agent_whose_beginning_was_not_heard_of_is_stopped(
    home: Path, host: Callable[..., Lossy], node_kit: Path
) -> None:
    one = host("a")
    one.loses = "begin"
    compute = on([one], home, node_kit)
    with pytest.raises(ComputeTargetException, match="was lost"):
        compute.start(order(home, "a"))
    there = RunFolder(Path(one.facts["home"]) / "runs" / "run")
    assert json.loads((there.root / "stop.json").read_bytes()) == {"reason": "launch failed"}
    eventually(lambda: agent_status(there) is None and there.events.exists(), "its agent ends")


def test_a_stop_that_was_long_on_its_way_does_not_end_the_next_attempt(
    home: Path, host: Callable[..., Lossy], node_kit: Path
) -> None:
    one = host("a")
    compute = on([one], home, node_kit)
    handle = compute.start(order(home, "a", attempt=2))
    there = RunFolder(Path(one.facts["home"]) / "runs" / "run")
    one.call("stop", run="run", reason="node lost", attempt=1)
    assert not (there.root / "stop.json").exists()
    compute.stop(handle)
    eventually(lambda: agent_status(there) is None, "its own stop ends it")


def test_a_builder_that_died_does_not_answer_for_its_successor(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []
    go_on = threading.Event()

    def said(answer: dict[str, Any]) -> None:
        answers.append(answer)
        if answer["id"] == 1:
            go_on.wait(30)

    builder = Builder(tmp_path, said)
    try:
        builder.ask(request(tmp_path, 1), "")
        eventually(lambda: answers, "the first is answered, and its listener is held up")
        assert builder._process is not None
        builder._process.kill()
        builder._process.wait()
        builder.ask(request(tmp_path, 2), "")
        go_on.set()
        eventually(lambda: any(answer["id"] == 2 for answer in answers), "the second is answered")
        assert "ended with code" not in str(answers)
    finally:
        builder.close()


def on(hosts: list[Lossy], home: Path, node_kit: Path) -> SshCompute:
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
