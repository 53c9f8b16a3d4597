"""Scripts that attack the files of their own run: the yard and other runs are not affected, and every run ends."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from runyard import Experiment
from runyard.errors import RunyardException, UserErrorException
from support import logged_errors, run_view, with_this_python, yard_pid

pytestmark = pytest.mark.real

NEIGHBOR = """
import os, sys, time
from runyard import Run
run = Run.get_context()
step = 0
while not os.path.exists(sys.argv[1]):
    run.log('step', step)
    step += 1
    time.sleep(0.005)
print('the last line')
open('outputs/steps.txt', 'w').write(str(step))
"""

PREPARE = """
import json, os, shutil, socket, sys, time
from pathlib import Path
from runyard import Run
run = Run.get_context()
folder = Path.cwd().parent
for step in range(1000):
    run.log('loss', 1 / (step + 1))
    run.log('text', str(step))
def remove(path):
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
def attack(path, kind):
    remove(path)
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'folder':
        path.mkdir()
    elif kind == 'link':
        path.symlink_to('/etc/passwd')
    elif kind == 'garbage':
        path.write_bytes(os.urandom(5000) + b'\\n[]\\n' + b'[' * 5000 + b'\\n')
    elif kind == 'empty':
        path.touch()
    elif kind == 'huge':
        with open(path, 'wb') as file:
            # outputs are stored, which reads them completely
            file.truncate(1 << 26 if 'work' in path.parts else 1 << 42)
"""

# what is attacked -> code
ATTACKS = {
    "a truncated journal": """
for _ in range(60):
    for path in folder.glob('journal/*'):
        os.truncate(path, 0)
        os.truncate(path, 1 << 20)
    time.sleep(0.05)
""",
    "events that are no events": """
lines = [b'[]', b'null', b'{}', b'[' * 100000, b'{"event": "script_ended"}', b'\\xff', b'x' * 10_000_000]
with open(folder / 'events.jsonl', 'ab') as file:
    file.write(b'\\n'.join(lines) + b'\\n')
time.sleep(2)
""",
}
for _kind in ("pipe", "folder", "link", "garbage", "empty", "huge"):
    ATTACKS[f"{_kind} in place of every file"] = f"""
for path in [*folder.iterdir(), *folder.glob('journal/*'), *folder.glob('azureml-logs/*')]:
    if path.name not in ('work', 'journal', 'azureml-logs', 'agent.lock'):
        attack(path, {_kind!r})
(folder / 'work' / 'logs').mkdir(exist_ok=True)
for path in (folder / 'work' / 'outputs' / 'events.out.tfevents.1', folder / 'work' / 'logs' / 'events.out.tfevents.2',
             folder / 'azureml-logs' / '70_driver_log_9.txt', folder / 'x.draft', folder / 'data.json'):
    attack(path, {_kind!r})
time.sleep(2)
"""
ATTACKS["pipe in place of the folders"] = """
for name in ('journal', 'azureml-logs', 'system', 'nodes'):
    attack(folder / name, 'pipe')
time.sleep(2)
"""
ATTACKS["links in place of the folders"] = """
for name in ('journal', 'azureml-logs', 'system', 'nodes'):
    remove(folder / name)
    (folder / name).symlink_to('/etc')
time.sleep(2)
"""
ATTACKS["names that are not text"] = """
for name in (b'\\xff\\xfe.txt', b'a\\nb', b'\\xed\\xa0\\x80'):
    for parent in (b'outputs', b'logs', b'../azureml-logs', b'../journal'):
        open(os.path.join(parent, name), 'w').close()
    open(os.path.join(b'outputs', name + b'.tfevents.1'), 'w').close()
time.sleep(2)
"""


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


def requests(experiment: Experiment, run_id: str) -> None:
    """Everything that a client can ask about the files of a run."""
    connection = experiment.workspace.connection
    for path in ("", "/series", "/system", "/files", "/logs", "/summary", "/plan", "/environment", "/timeline"):
        connection.get(f"/api/runs/{run_id}{path}")
    for log in connection.get(f"/api/runs/{run_id}/logs"):
        with suppress(UserErrorException):  # the script has removed the log since
            assert b"root:" not in connection.read(f"/api/runs/{run_id}/logs/{log['name']}")


def test_no_file_of_a_run_can_harm_the_yard_or_another_run(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    scripts = {f"attack{number}": PREPARE + code for number, code in enumerate(ATTACKS.values())}
    folder = project(neighbor=NEIGHBOR, **scripts)
    neighbor = experiment.submit(with_this_python(folder, "neighbor.py", arguments=[str(gate)]))
    pid = yard_pid(home)
    assert pid is not None
    runs = [experiment.submit(with_this_python(folder, f"{name}.py")) for name in scripts]
    asking, errors = threading.Event(), []

    def ask() -> None:
        while not asking.wait(0.3) and not errors:
            for run in runs:
                try:
                    requests(experiment, run.id)
                except RunyardException as error:
                    errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for name, run in zip(ATTACKS, runs):
            details = run.wait_for_completion(raise_on_error=False)
            assert details["status"] in ("Completed", "Failed"), (name, details)
            assert yard_pid(home) == pid, name
    finally:
        asking.set()
        thread.join()
    assert errors == []
    for run in runs:
        requests(experiment, run.id)
    statuses = {name: run.get_status() for name, run in zip(ATTACKS, runs)}
    assert set(statuses.values()) == {"Completed"}, statuses
    (bad_events,) = [run for name, run in zip(ATTACKS, runs) if name == "events that are no events"]
    assert any("events.jsonl" in str(warning) for warning in run_view(bad_events)["warnings"])
    gate.touch()
    assert neighbor.wait_for_completion()["status"] == "Completed"
    steps = neighbor.get_metrics()["step"]
    assert steps == list(range(len(steps)))
    neighbor.download_file("outputs/steps.txt", str(tmp_path / "steps.txt"))
    assert int((tmp_path / "steps.txt").read_text()) == len(steps)
    assert "the last line" in (home / "runs" / neighbor.id / "azureml-logs" / "70_driver_log.txt").read_text()
    assert yard_pid(home) == pid
    assert logged_errors(home) == []
