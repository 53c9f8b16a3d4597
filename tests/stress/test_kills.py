"""kill -9 at random moments: nothing acknowledged is lost, nothing is done twice, no leftovers remain."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runyard import Experiment, Run, Workspace
from runyard.agent.process.process_tree import find_processes
from runyard.errors import YardUnavailable
from runyard.launch.variables import process_tag
from runyard.spec.folder import RunFolder
from support import eventually, holds_for, is_alive, stop_yard, with_this_python, yard_pid

TRAIN = """
import sys, time
from runyard import Run
run = Run.get_context()
number = int(sys.argv[1])
for step in range(40):
    run.log('step', step)
    print('line', step, flush=True)
    time.sleep(0.005)
for name in range(20):
    open(f'outputs/{name}.txt', 'w').write(f'{number} {name}' * 1000)
run.log('number', number)
print('end of', number)
sys.exit(number % 5 == 4)
"""


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


@pytest.fixture
def rng() -> Iterator[random.Random]:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    return random.Random(seed)


def check_complete(home: Path, run: Run, number: int) -> None:
    """Check status, metrics, log lines and outputs: each exactly once."""
    assert run.get_status() == ("Failed" if number % 5 == 4 else "Completed"), run.get_details().get("error")
    metrics = run.get_metrics()
    assert metrics["step"] == list(range(40))
    assert metrics["number"] == number
    log = (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text()
    assert log == "".join(f"line {step}\n" for step in range(40)) + f"end of {number}\n"
    assert [name for name in run.get_file_names() if name.startswith("outputs/")] == sorted(
        f"outputs/{name}.txt" for name in range(20)
    )


def check_clean(home: Path, runs: list[Run]) -> None:
    """Check that no process, temporary file or working copy of an ended run remains."""
    for run in runs:
        folder = RunFolder(home / "runs" / run.id)
        assert find_processes(process_tag(run.id, folder)) == []

    patterns = (
        "tmp*", "artifacts/incoming-*", "environments/*.building*", "snapshots/incoming/*", "runs/*/work",
        "runs/*/*.draft", ".writable-*", "**/*.partial*",
    )  # fmt: skip

    def leftovers() -> list[str]:
        try:
            return [str(path.relative_to(home)) for pattern in patterns for path in home.glob(pattern)]
        except FileNotFoundError as error:  # a folder that is being deleted
            return [str(error)]

    eventually(lambda: not leftovers(), f"everything is cleaned up: {leftovers()}")


@pytest.mark.real
@pytest.mark.timeout(600)
def test_twenty_kills_of_the_yard_while_runs_are_submitted(
    home: Path, experiment: Experiment, project, rng: random.Random
) -> None:
    config = [with_this_python(project(train=TRAIN), arguments=[number]) for number in range(40)]
    killed = threading.Event()
    kills = 0

    def killer() -> None:
        nonlocal kills
        while kills < 20 and not killed.is_set():
            time.sleep(rng.uniform(0.0, 2.0))
            pid = yard_pid(home)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                kills += 1

    thread = threading.Thread(target=killer)
    thread.start()
    runs = []
    try:
        for number in range(40):
            while True:
                try:
                    runs.append(experiment.submit(config[number]))
                    break
                except YardUnavailable:  # it may be killed three times in a row
                    continue
        while thread.is_alive() and kills < 20:  # keep a yard running until it was killed 20 times
            with suppress(YardUnavailable):
                experiment.workspace.connection.get("/api/health")
            thread.join(0.1)
    finally:
        thread.join(120)
        killed.set()
    assert kills == 20
    for number, run in enumerate(runs):
        run.wait_for_completion(raise_on_error=False)
        check_complete(home, run, number)
    # A submission whose yard was killed three times during the reply was not acknowledged and was repeated above: the
    # first one may exist as well.
    run_ids = [run.id for run in experiment.get_runs()]
    assert len(run_ids) == len(set(run_ids))
    assert {run.id for run in runs} <= set(run_ids)
    check_clean(home, runs)


@pytest.mark.real
def test_kills_while_outputs_are_stored_store_each_once(
    home: Path, experiment: Experiment, project, rng: random.Random
) -> None:
    script = """
import os
for n in range(600):
    open(f'outputs/{n}', 'wb').write(os.urandom(20_000) if n % 3 else b'same')
"""
    run = experiment.submit(with_this_python(project(train=script)))
    for _ in range(8):
        eventually(
            lambda: run.get_status() not in ("NotStarted", "Preparing", "Queued", "Starting", "Running"), "it ends"
        )
        if run.get_status() == "Completed":
            break
        time.sleep(rng.uniform(0.0, 0.1))
        stop_yard(home, signal.SIGKILL)
    assert run.wait_for_completion()["status"] == "Completed"
    files = {f["name"]: f["size"] for f in experiment.workspace.connection.get(f"/api/runs/{run.id}/files")}
    assert {n: s for n, s in files.items() if n.startswith("outputs/")} == {
        f"outputs/{n}": 20_000 if n % 3 else 4 for n in range(600)
    }
    stored = list((home / "artifacts").glob("??/*"))
    assert len(stored) == 401
    check_clean(home, [run])


@pytest.mark.real
def test_kills_during_a_cancellation_end_in_canceled(
    home: Path, experiment: Experiment, project, rng: random.Random
) -> None:
    script = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(['sleep', '600'], start_new_session=True)
print('on', flush=True)
time.sleep(600)
"""
    config = with_this_python(project(train=script))
    runs = [experiment.submit(config) for _ in range(4)]
    for run in runs:
        time.sleep(rng.uniform(0.0, 0.5))
        run.cancel()
        time.sleep(rng.uniform(0.0, 0.05))
        stop_yard(home, signal.SIGKILL)
    for run in runs:
        assert run.wait_for_completion()["status"] == "Canceled"
    check_clean(home, runs)


@pytest.mark.real
def test_a_suspended_yard_is_waited_for(home: Path, experiment: Experiment, project) -> None:
    experiment.workspace.connection.get("/api/health")
    pid = yard_pid(home)
    assert pid is not None
    run = experiment.submit(with_this_python(project(train=TRAIN), arguments=[0]))
    os.kill(pid, signal.SIGSTOP)
    try:
        replies: list[object] = []
        requests = [
            threading.Thread(target=lambda: replies.append(Run(experiment, run.id).get_status())) for _ in range(8)
        ]
        requests.append(
            threading.Thread(
                target=lambda: replies.append(
                    experiment.submit(with_this_python(project(train=TRAIN), arguments=[1])).wait_for_completion()[
                        "status"
                    ]
                )
            )
        )
        for thread in requests:
            thread.start()
        holds_for(3, lambda: replies == [], "a suspended yard responded")  # the run continues and ends
    finally:
        os.kill(pid, signal.SIGCONT)
    for thread in requests:
        thread.join(60)
    assert len(replies) == 9
    assert yard_pid(home) == pid
    run.wait_for_completion()
    check_complete(home, run, 0)


def test_kill_9_of_the_fork_server_does_not_affect_runs(home: Path, experiment: Experiment, project) -> None:
    config = with_this_python(project(train=TRAIN), arguments=[0])
    first = experiment.submit(config)
    pid = yard_pid(home)
    forkservers = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _parent(int(entry.name)) == pid and b"forkserver" in _command(int(entry.name))
    ]
    assert forkservers
    for forkserver in forkservers:
        os.kill(forkserver, signal.SIGKILL)
    second = experiment.submit(config)
    for run in (first, second):
        run.wait_for_completion()
        check_complete(home, run, 0)


@pytest.mark.parametrize("victim", ["script", "child of the script"])
def test_kill_9_of_a_process_of_the_run_is_reported(home: Path, experiment: Experiment, project, victim: str) -> None:
    script = """
import subprocess, sys
child = subprocess.Popen(['sleep', '600'])
print(child.pid, flush=True)
child.wait()
sys.exit(5)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    log = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    eventually(lambda: log.exists() and log.read_text().endswith("\n"), "the child runs")
    child = int(log.read_text())
    events = home / "runs" / run.id / "events.jsonl"
    eventually(lambda: events.exists() and events.read_text().endswith("\n"), "its agent has recorded the start")
    script_pid = json.loads(events.read_text().splitlines()[0])["pid"]
    os.kill(child if victim == "child of the script" else script_pid, signal.SIGKILL)
    details = run.wait_for_completion(raise_on_error=False)
    error = details["error"]["error"]
    assert details["status"] == "Failed"
    assert error["reason"] == ("script failed" if victim == "child of the script" else "killed")
    assert not is_alive(child)
    assert not is_alive(script_pid)
    check_clean(home, [run])


def test_a_yard_stops_on_sigterm_while_a_client_follows_a_run(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('finished')"
    run = experiment.submit(with_this_python(project(train=script)))
    eventually(lambda: run.get_status() == "Running", "it runs")
    expression = f"Run(Experiment(Workspace(), {experiment.name!r}), {run.id!r})"
    code = f"from runyard import *; {expression}.wait_for_completion(True)"
    follower = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert follower.stdout.readline().startswith("RunId")
    first = yard_pid(home)
    assert first is not None
    os.kill(first, signal.SIGTERM)
    eventually(lambda: not is_alive(first), "the yard ends")
    go.touch()
    output, _ = follower.communicate(timeout=60)
    assert "finished" in output
    assert follower.returncode == 0


def test_a_client_killed_during_a_submission_causes_no_problems(home: Path, project, rng) -> None:
    folder = project(train="print(1)")
    for number in range(40):
        (folder / f"data{number}.bin").write_bytes(os.urandom(200_000))
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from runyard import *
from support import with_this_python
from pathlib import Path
print('ready', flush=True)
Experiment(Workspace(), 'killed').submit(with_this_python(Path({str(folder)!r})))
"""
    Workspace().connection.get("/api/health")
    for _ in range(6):
        client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        client.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.25))
        client.kill()
        client.communicate()
    run = Experiment(Workspace(), "killed").submit(with_this_python(folder))
    assert run.wait_for_completion()["status"] == "Completed"
    for other in Experiment(Workspace(), "killed").get_runs():
        assert other.wait_for_completion()["status"] == "Completed"


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
