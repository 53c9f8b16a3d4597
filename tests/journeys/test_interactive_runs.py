"""Interactive runs end with their process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import Experiment, Run
from support import eventually, with_this_python


def start(experiment: Experiment, body: str, folder: Path) -> tuple[subprocess.Popen[str], Run]:
    """Start a process that opens a run, prints its id, and then executes ``body``."""
    code = f"""
import os, sys, time, signal
from runyard import Experiment, Run, Workspace
run = Experiment(Workspace(), {experiment.name!r}).start_logging(snapshot_directory=None)
print(run.id, flush=True)
run.log('x', 1)
{body}
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    assert run_id, process.communicate()[1]
    return process, Run(experiment, run_id)


def wait_for_end(process: subprocess.Popen[str], run: Run) -> dict:
    process.communicate(timeout=60)
    return run.wait_for_completion(raise_on_error=False)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("", "Completed", ""),
        ("run.complete()", "Completed", ""),
        ("1 / 0", "Failed", "ZeroDivisionError: division by zero"),
        ("raise KeyboardInterrupt", "Failed", "KeyboardInterrupt"),
        ("sys.exit(0)", "Completed", ""),
        ("sys.exit(3)", "Failed", "exit code 3"),
        ("sys.exit('no data')", "Failed", "no data"),
        ("os._exit(0)", "Failed", "its process ended without"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "Failed", "its process ended without"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "Failed", "its process ended without"),
        ("os.abort()", "Failed", "its process ended without"),
        ("run.fail('bad data', 'E42')", "Failed", "E42: bad data"),
        ("run.cancel()", "Canceled", "canceled"),
        ("run.complete(); run.complete(); run.fail()", "Completed", ""),
        ("run.complete(); os._exit(7)", "Completed", ""),
    ],
)
@pytest.mark.real
def test_a_run_ends_with_its_process(
    experiment: Experiment, tmp_path: Path, body: str, status: str, message: str
) -> None:
    details = wait_for_end(*start(experiment, body, tmp_path))
    assert details["status"] == status
    assert message in details.get("error", {}).get("message", "")


def test_outputs_are_stored_when_the_process_ends_without_complete(experiment: Experiment, tmp_path: Path) -> None:
    process, run = start(experiment, "open('outputs/model.txt', 'w').write('m')", tmp_path)
    assert wait_for_end(process, run)["status"] == "Completed"
    assert run.get_file_names() == ["outputs/model.txt"]


def test_a_forked_child_neither_ends_the_run_nor_keeps_it_alive(experiment: Experiment, tmp_path: Path) -> None:
    body = """
child = os.fork()
if child == 0:
    run.log('child', 1)
    sys.exit(0)
os.waitpid(child, 0)
assert run.get_status() == 'Running'
if os.fork() == 0:
    os.setsid()
    os.close(1), os.close(2)
    time.sleep(60)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    process, run = start(experiment, body, tmp_path)
    details = wait_for_end(process, run)
    assert details["status"] == "Failed"
    assert details["error"]["error"]["reason"] == "process lost"
    assert run.get_metrics() == {"x": 1, "child": 1}


def test_a_child_process_by_exec_does_not_keep_the_run_alive(experiment: Experiment, tmp_path: Path) -> None:
    body = """
import subprocess
child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open('pid', 'w').write(str(child.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""
    process, run = start(experiment, body, tmp_path)
    try:
        assert wait_for_end(process, run)["status"] == "Failed"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.real
def test_a_process_killed_before_it_locked_its_run_is_detected(experiment: Experiment) -> None:
    request = {"run_id": f"orphan-{os.urandom(4).hex()}", "experiment": experiment.name}
    experiment.workspace.connection.post("/api/runs/begin", request)
    run = Run(experiment, request["run_id"])
    assert run.get_status() == "Running"
    eventually(lambda: run.get_status() == "Failed", "the run without a process to fail", within_s=30)


def test_two_runs_of_one_process_are_two_runs(experiment: Experiment, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = experiment.start_logging(snapshot_directory=None, outputs="one")
    second = experiment.start_logging(snapshot_directory=None, outputs="two")
    first.log("x", 1)
    second.log("x", 2)
    Path("one/f").write_text("1")
    Path("two/f").write_text("22")
    second.complete()
    assert first.get_status() == "Running"
    first.complete()
    assert (first.get_metrics(), second.get_metrics()) == ({"x": 1}, {"x": 2})
    assert first.get_file_names() == second.get_file_names() == ["outputs/f"]


def test_a_submitted_script_may_open_interactive_and_child_runs(experiment: Experiment, project) -> None:
    script = """
from runyard import Run
run = Run.get_context()
with run.experiment.start_logging(snapshot_directory=None, outputs='other') as other:
    other.log('who', 'other')
children = run.create_children(count=2)
for number, child in enumerate(children):
    child.log('who', number)
    child.complete()
with run.child_run('named') as child:
    child.log('who', 'named')
left = run.child_run('left open')
left.log('who', 'left')
run.log('who', 'me')
run.complete()
run.cancel()
run.log('after', 1)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"who": "me", "after": 1}
    children = list(run.get_children())
    assert {str(child.get_metrics()["who"]) for child in children} == {"0", "1", "named", "left"}
    assert {child.get_status() for child in children} == {"Completed"}
    other_runs = [other for other in experiment.get_runs() if other.id != run.id]
    assert [other.get_metrics() for other in other_runs] == [{"who": "other"}]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_script_log_to_its_run(experiment: Experiment, project, method: str) -> None:
    script = f"""
import multiprocessing
from runyard import Run

def work(number):
    run = Run.get_context()
    run.log('from workers', number)
    run.log(f'worker {{number}}', number)
    return run.id

if __name__ == '__main__':
    run = Run.get_context()
    run.log('from workers', -1)
    with multiprocessing.get_context({method!r}).Pool(4) as pool:
        assert set(pool.map(work, range(20), 1)) == {{run.id}}
    run.log('end', 1)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    metrics = run.get_metrics()
    assert sorted(metrics["from workers"]) == list(range(-1, 20))
    assert {metrics[f"worker {number}"] for number in range(20)} == set(range(20))
    assert metrics["end"] == 1


def test_get_context_returns_the_same_object_within_a_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home
) -> None:
    monkeypatch.setenv("RUNYARD_RUN_ID", "digits_1_abc")
    monkeypatch.setenv("RUNYARD_RUN_FOLDER", str(tmp_path))
    monkeypatch.setenv("AZUREML_ARM_PROJECT_NAME", "digits")
    assert Run.get_context() is Run.get_context()
    assert Run.get_submitted_run() is Run.get_context()
