"""A home on a full disk: a clear error, no damage, and work continues when there is space again."""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runyard import Experiment, Run, Workspace
from runyard.errors import RunyardException
from support import eventually, holds_for, run_view, stop_runs, stop_yard, with_this_python, yard_pid

pytestmark = pytest.mark.real

SIZE = 24 * 1024 * 1024


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home on a separate disk of 24 MB."""
    folder = Path(tempfile.mkdtemp(prefix="ry-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    monkeypatch.setenv("RUNYARD_HOME", str(folder))
    try:
        yield folder
    finally:
        (folder / "ballast").unlink(missing_ok=True)
        stop_yard(folder)
        stop_runs(folder)
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill(home: Path, leave: int = 0) -> None:
    """Fill the disk."""
    with open(home / "ballast", "ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    ballast.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        if leave:
            ballast.truncate(ballast.tell() - leave)


def free_space(home: Path) -> None:
    (home / "ballast").unlink()


def post(home: Path, path: str, body: Any) -> tuple[int, Any]:
    """Send a request to the yard's socket and return the status and the JSON answer."""
    connection = http.client.HTTPConnection("yard")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(home / "yard.sock"))
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def works(experiment: Experiment, project) -> None:
    run = experiment.submit(with_this_python(project(train="from runyard import Run\nRun.get_context().log('x', 1)")))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"x": 1}


def test_a_yard_that_cannot_start_reports_the_reason(home: Path, project) -> None:
    fill(home)
    with pytest.raises(RunyardException, match=r"(?i)space") as caught:
        Workspace().connection.get("/api/health")
    assert "free" in caught.value.hint
    free_space(home)
    works(Experiment(Workspace(), "later"), project)


def test_a_submission_is_refused_and_nothing_is_started(home: Path, experiment: Experiment, project) -> None:
    works(experiment, project)
    fill(home)
    folder = project(train="print('new code')")
    (folder / "data.bin").write_bytes(os.urandom(3_000_000))
    with pytest.raises(RunyardException, match=r"(?i)space|full"):
        experiment.submit(with_this_python(folder))
    (earlier,) = experiment.get_runs()
    with pytest.raises(RunyardException, match=r"(?i)space|full"):
        earlier.set_tags({f"tag {number}": "v" * 10_000 for number in range(1000)})
    assert len(list(experiment.get_runs())) == 1
    free_space(home)
    (folder / "data.bin").unlink()
    works(experiment, project)
    assert len(list(experiment.get_runs())) == 2
    assert [path.name for path in (home / "snapshots" / "incoming").iterdir()] == []


def files_of(home: Path) -> set[str]:
    """All files and folders of runs and snapshots, without those that the yard itself writes to."""
    return {str(path.relative_to(home)) for name in ("runs", "snapshots") for path in (home / name).rglob("*")} - {
        "snapshots/index"
    }


def test_a_refused_submission_is_answered_with_507_and_leaves_nothing(
    home: Path, experiment: Experiment, project, tmp_path: Path
) -> None:
    works(experiment, project)
    before = files_of(home)
    fill(home)
    folder = project(train="print('new code')")
    (folder / "data.bin").write_bytes(os.urandom(3_000_000))
    body = {  # as the command line sends it: the yard reads the folder itself
        "run_id": f"{experiment.name}_1_refused",
        "experiment": experiment.name,
        "spec": {"script": "train.py", "environment": {"user_managed": True, "interpreter": sys.executable}},
        "source_directory": str(folder),
    }
    status, answer = post(home, "/api/runs", body)
    assert status == 507, answer
    assert "space" in answer["message"].lower()
    assert answer["hint"]
    # a submission whose code is known already fails later, when the run is stored
    (folder / "data.bin").unlink()
    (folder / "train.py").write_text("from runyard import Run\nRun.get_context().log('x', 1)")
    for number in range(3):
        status, answer = post(home, "/api/runs", {**body, "run_id": f"{experiment.name}_2_{number}"})
        assert status in (200, 507), answer
        if status == 507:
            assert "space" in answer["message"].lower() or "full" in answer["message"].lower()
            assert not (home / "runs" / f"{experiment.name}_2_{number}").exists()
    assert not (home / "runs" / body["run_id"]).exists()
    left = {name for name in files_of(home) - before if name.endswith((".draft", ".pack", ".part"))}
    assert left == set()
    free_space(home)
    works(experiment, project)


def test_every_point_is_stored_or_counted_as_lost(home: Path, experiment: Experiment, project, tmp_path: Path) -> None:
    """The disk is full until the script ends, and the script is killed, so that it cannot report anything itself."""
    full = tmp_path / "full"
    script = (
        "import os, signal, sys, time\nfrom runyard import Run\nrun = Run.get_context()\nrun.log('n', 0)\n"
        "open('go', 'w').close()\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "for n in range(3000): run.log('n', n)\nrun.log_list('list', range(100))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = experiment.submit(with_this_python(project(train=script), arguments=[str(full)]))
    eventually(lambda: (home / "runs" / run.id / "work" / "go").exists(), "the script waits")
    fill(home)
    full.touch()
    lock = home / "runs" / run.id / "journal"
    eventually(lambda: any(lock.glob("*.lost")), "points were lost")
    free_space(home)
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    metrics = run.get_metrics()
    stored = len(metrics["n"]) + len(metrics.get("list", []))
    (warning,) = [str(warning) for warning in run_view(run)["warnings"] if "lost" in str(warning)]
    lost = int(warning.split()[0].replace(",", ""))
    assert stored + lost == 1 + 3000 + 100
    assert lost > 0


def test_uploads_that_do_not_fit_leave_nothing(home: Path, experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(os.urandom(2 * SIZE))
    with experiment.start_logging(snapshot_directory=None) as run:
        before = os.statvfs(home).f_bavail
        with pytest.raises(RunyardException, match=r"(?i)space|full"):
            run.upload_file("big.bin", str(tmp_path / "big.bin"))
        assert run.get_file_names() == []
        assert abs(os.statvfs(home).f_bavail - before) < 500
        run.upload_file("small.txt", str(Path(__file__)))
    assert run.get_file_names() == ["small.txt"]


HUNGRY = """
import os, sys, time
from runyard import Run
run = Run.get_context()
run.log('before', 1)
open('go', 'w').close()
def patient(path, size):
    while True:
        try:
            with open(path, 'wb') as file:
                file.write(b'x' * size)
            return
        except OSError:
            time.sleep(0.05)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for n in range(2000):
    run.log('while full', n)
run.log_list('also', range(1000))
try:
    print('y' * 1_000_000, flush=True)
except OSError as error:
    pass
patient('outputs/model.bin', 100_000)
run.log('after', 1)
"""


@pytest.mark.parametrize("moment", ["while it runs", "while it ends"])
def test_a_run_survives_a_full_disk(home: Path, experiment: Experiment, project, tmp_path: Path, moment: str) -> None:
    full = tmp_path / "full"
    script = (
        HUNGRY
        if moment == "while it runs"
        else "import os, sys, time\nfrom runyard import Run\n"
        + (
            "run = Run.get_context()\nopen('outputs/model.bin', 'wb').write(b'x' * 100_000)\nopen('go', 'w').close()\n"
            "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\nrun.log('after', 1)\n"
        )
    )
    run = experiment.submit(with_this_python(project(train=script), arguments=[str(full)]))
    eventually(lambda: (home / "runs" / run.id / "work" / "go").exists(), "the script waits")
    fill(home)
    full.touch()
    if moment == "while it ends":
        lock = home / "runs" / run.id / "agent.lock"
        eventually(lambda: run.get_status() != "Running" or lock.exists(), "the script has finished")
        holds_for(3, lambda: run.get_status() in ("Running", "Finalizing", "Completed"), "a full disk failed the run")
    else:
        eventually(lambda: (home / "runs" / run.id / "work" / "outputs" / "model.bin").exists(), "it tries to write")
    assert run.get_status() in ("Running", "Finalizing", "Completed")
    free_space(home)
    details = run.wait_for_completion()
    assert details["status"] == "Completed"
    assert "outputs/model.bin" in run.get_file_names()
    assert Run(experiment, run.id).get_status() == "Completed"
    works(experiment, project)
    with closing(sqlite3.connect(home / "yard.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_waiting_runs_continue_when_there_is_space(home: Path, experiment: Experiment, project, tmp_path) -> None:
    gate = tmp_path / "gate"
    folder = project(
        block=f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)",
        train="print('through')",
    )
    cores = experiment.workspace.connection.get("/api/computes/local")["status"]["cpus"]
    holding = [experiment.submit(with_this_python(folder, "block.py")) for _ in range(cores)]
    eventually(lambda: [run.get_status() for run in holding] == ["Running"] * cores, "the machine is full")
    waiting = [experiment.submit(with_this_python(folder)) for _ in range(3)]
    eventually(lambda: [run.get_status() for run in waiting] == ["Queued"] * 3, "the others wait")
    fill(home)
    gate.touch()
    holds_for(3, lambda: yard_pid(home) is not None, "a full disk ended the yard")
    free_space(home)
    ends = [run.wait_for_completion(raise_on_error=False) for run in (*holding, *waiting)]
    for details in ends:
        # a run may be refused by a full disk, with that as its reason; none may hang
        if details["status"] != "Completed":
            assert "space" in details["error"]["message"].lower() or "full" in details["error"]["message"].lower()
    assert [details["status"] for details in ends[: len(holding)]] == ["Completed"] * len(holding)
    works(experiment, project)
