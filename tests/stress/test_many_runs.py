"""Many runs: concurrent, from threads and processes, and in sequence without resource growth."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runyard import Experiment, Run, Workspace
from support import eventually, run_view, with_this_python, yard_pid

pytestmark = pytest.mark.real

TRAIN = """
import sys
from runyard import Run
run = Run.get_context()
number = int(sys.argv[1])
for step in range(10):
    run.log('step', number * 100 + step)
print('I am', number)
open('outputs/me.txt', 'w').write(str(number))
"""


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


def test_fifty_concurrent_runs_are_independent(home: Path, experiment: Experiment, project, tmp_path: Path) -> None:
    folder = project(train=TRAIN)
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from runyard import Experiment, Workspace
from support import with_this_python
for number in range(int(sys.argv[1]), int(sys.argv[1]) + 5):
    config = with_this_python(Path({str(folder)!r}), arguments=[number])
    print(Experiment(Workspace(), {experiment.name!r}).submit(config, tags={{'number': number}}).id)
"""
    clients = [
        subprocess.Popen([sys.executable, "-c", code, str(first)], stdout=subprocess.PIPE, text=True)
        for first in range(0, 25, 5)
    ]  # concurrently with threads of this process; no yard is running yet

    def submit(number: int) -> str:
        return experiment.submit(with_this_python(folder, arguments=[number]), tags={"number": number}).id

    with ThreadPoolExecutor(25) as pool:
        ids = list(pool.map(submit, range(25, 50)))
    for client in clients:
        ids += client.communicate(timeout=120)[0].split()
        assert client.returncode == 0
    assert len(set(ids)) == 50
    runs = [Run(experiment, run_id) for run_id in ids]
    for run in runs:
        assert run.wait_for_completion()["status"] == "Completed"
        number = int(run.get_tags()["number"] or -1)
        assert run.get_metrics() == {"step": [number * 100 + step for step in range(10)]}
        run.download_file("outputs/me.txt", str(tmp_path / "me.txt"))
        assert (tmp_path / "me.txt").read_text() == str(number)
        log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
        assert log == f"I am {number}\n"


def test_runs_start_in_the_order_of_their_submission(experiment: Experiment, project, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    order = tmp_path / "order"
    folder = project(
        block=f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)",
        train=f"import sys\nopen({str(order)!r}, 'a').write(sys.argv[1] + '\\n')",
    )
    cores = experiment.workspace.connection.get("/api/computes/local")["status"]["cpus"]
    holding = [experiment.submit(with_this_python(folder, "block.py")) for _ in range(cores)]
    eventually(lambda: all(run.get_status() == "Running" for run in holding), "the machine is full")
    runs = [experiment.submit(with_this_python(folder, arguments=[number])) for number in range(20)]
    eventually(lambda: all(run.get_status() == "Queued" for run in runs), "all of them wait")
    assert runs[0].activity.startswith("position 1 of 20"), runs[0].activity
    gate.touch()
    for run in runs:
        run.wait_for_completion()
    started = sorted(runs, key=lambda run: run_view(run)["timeline"]["Starting"])
    # as many as there are CPUs start at the same time
    assert [run.id for position, run in enumerate(started) if abs(position - runs.index(run)) > cores] == []


def test_two_hundred_runs_leak_no_resources_in_the_yard(home: Path, experiment: Experiment, project) -> None:
    config = with_this_python(project(train="print(1)"))

    def run_some(count: int) -> None:
        for _ in range(count):
            assert experiment.submit(config).wait_for_completion()["status"] == "Completed"

    run_some(40)  # pools and caches have reached their size
    pid = yard_pid(home)
    assert pid is not None
    before = held(pid)
    run_some(200)
    assert yard_pid(home) == pid
    after = held(pid)
    assert after["descriptors"] <= before["descriptors"] + 4, (before, after)
    assert after["threads"] <= before["threads"] + 4, (before, after)
    assert after["resident_kb"] <= before["resident_kb"] + 12_000, (before, after)
    assert Workspace().connection.get("/api/health")["pid"] == pid


def held(pid: int) -> dict[str, int]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return {
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(status["Threads"]),
        "resident_kb": int(status["VmRSS"].split()[0]),
    }
