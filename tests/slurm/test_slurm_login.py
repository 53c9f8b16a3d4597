"""Slurm behind a login node: a yard that has no Slurm of its own, and reaches one by SSH, as an ordinary user there."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runyard import ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, SlurmCompute, Workspace
from runyard.errors import ComputeTargetException
from ssh_hosts import require_sshd
from support import a_home, eventually, stop_yard

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]


@dataclass
class Login:
    address: str
    home: Path  # the user's
    folder: Path
    pid_file: Path
    start: list[str]

    def cut(self) -> None:
        """The server and all its connections go; whatever runs on the cluster stays."""
        server = int(self.pid_file.read_text())
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for pid in (server, *map(int, children)):
            with suppress(ProcessLookupError):  # a connection may have ended since
                os.kill(pid, signal.SIGKILL)

    def mend(self) -> None:
        subprocess.run(self.start, check=True)


@pytest.fixture(scope="module")
def login(slurm_folder: Path) -> Iterator[Login]:
    """A real sshd on this machine, whose sessions know the cluster; the yard's own environment does not."""
    require_sshd()
    base = Path(tempfile.mkdtemp(prefix="login-", dir="/var/tmp"))
    base.chmod(0o755)
    user, home = f"ry{os.getpid()}", base / "home"
    subprocess.run(
        ["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", "--password", "*", user], check=True
    )
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shutil.copyfile(base / "key.pub", base / "authorized_keys")
    (base / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {base}/host\nPidFile {base}/sshd.pid\nUsePAM no\n"
        f"AuthorizedKeysFile {base}/authorized_keys\nStrictModes no\n"
        f"SetEnv SLURM_CONF={slurm_folder}/slurm.conf\n"
    )
    (base / "known_hosts").write_text(f"[127.0.0.1]:{port} {(base / 'host.pub').read_text()}")
    (base / "ssh_config").write_text(
        f"Host login\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  IdentityFile {base}/key\n"
        f"  IdentityAgent none\n  UserKnownHostsFile {base}/known_hosts\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    found = Login("login", home, home / "there", base / "sshd.pid", ["/usr/sbin/sshd", "-f", str(base / "sshd_config")])
    found.mend()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_SSH", f"ssh -F {base}/ssh_config")
        yield found
    found.cut()
    eventually(lambda: subprocess.run(["userdel", user], capture_output=True).returncode in (0, 6), "the user is gone")
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def far(login: Login) -> Iterator[tuple[Workspace, Path]]:
    """A yard without Slurm: only the login node has one."""
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        patch.delenv("SLURM_CONF")
        workspace = Workspace()
        wanted = SlurmCompute.attach_configuration("main", login=login.address, folder=str(login.folder))
        ComputeTarget.attach(workspace, "far", wanted)
        yield workspace, home


def submitted(workspace: Workspace, folder: Path, *arguments: object, job: object = None) -> Run:
    config = ScriptRunConfig(
        folder, script="train.py", arguments=list(arguments), compute_target="far", distributed_job_config=job
    )
    config.run_config.environment.python.user_managed_dependencies = True
    return Experiment(workspace, "far").submit(config)


def test_a_run_goes_there_and_what_it_made_comes_back(far, login: Login, project) -> None:
    workspace, home = far
    script = (
        "import os\nfrom runyard import Run\nrun = Run.get_context()\nrun.log('loss', 0.5)\n"
        "open('outputs/model.txt', 'w').write('m')\nprint('in', os.getcwd(), 'on', os.environ['SLURMD_NODENAME'])\n"
        "assert os.getuid() != 0"
    )
    run = submitted(workspace, project(train=script))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"loss": 0.5}
    assert "outputs/model.txt" in run.get_file_names()
    log = (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text()
    assert log.startswith(f"in {login.folder}")
    assert " on n" in log


def test_a_gang_runs_across_the_nodes(far, project) -> None:
    workspace, home = far
    run = submitted(
        workspace,
        project(train="import os\nprint('rank', os.environ['RANK'], os.environ['SLURMD_NODENAME'])"),
        job=PyTorchConfiguration("Gloo", process_count=2, node_count=2),
    )
    assert run.wait_for_completion()["status"] == "Completed"
    logs = home / "runs" / run.id / "azureml-logs"
    nodes = {(logs / f"70_driver_log_rank_{rank}.txt").read_text().split()[-1] for rank in range(2)}
    assert len(nodes) == 2


def test_a_run_is_cancelled_there(far, project) -> None:
    workspace, _ = far
    run = submitted(workspace, project(train="import time\nprint('up', flush=True)\ntime.sleep(600)"))
    eventually(lambda: run.get_status() == "Running", "it runs")
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"


def test_a_cut_and_a_killed_yard_lose_nothing(far, login: Login, project) -> None:
    workspace, home = far
    gate = login.home / "gate"
    script = (
        "import os, sys, time\nfrom runyard import Run\nrun = Run.get_context()\n"
        "for step in range(200):\n    print('line', step)\n    run.log('step', step)\n    time.sleep(0.01)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    )
    run = submitted(workspace, project(train=script), gate)
    log = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    eventually(lambda: log.exists() and "line 20" in log.read_text(), "it is under way")
    login.cut()
    stop_yard(home, signal.SIGKILL)
    there = login.folder.rglob(f"runs/{run.id}/azureml-logs/70_driver_log.txt")
    path = next(there)
    eventually(lambda: "line 199" in path.read_text(), "it goes on there")
    login.mend()
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert log.read_text().splitlines() == [f"line {step}" for step in range(200)]
    assert run.get_metrics()["step"] == list(range(200))


def test_a_login_node_without_slurm_says_so(far, login: Login) -> None:
    workspace, _ = far
    with pytest.raises(ComputeTargetException, match="this Slurm has no partition 'nope'"):
        ComputeTarget.attach(workspace, "b", SlurmCompute.attach_configuration("nope", login=login.address))
    with pytest.raises(ComputeTargetException, match="elsewhere"):
        ComputeTarget.attach(workspace, "c", SlurmCompute.attach_configuration("main", login="me@elsewhere.invalid"))


def test_data_goes_to_the_login_node_once_and_what_was_written_there_comes_to_the_datastore(
    far, project, tmp_path: Path
) -> None:
    workspace, home = far
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "sub" / "b.txt").write_text("the b")
    store = workspace.get_default_datastore()
    store.upload(str(tmp_path / "data"), "far", show_progress=False)
    script = (
        "import os, pathlib, sys\nprint('read', (pathlib.Path(sys.argv[1]) / 'sub' / 'b.txt').read_text())\n"
        "(pathlib.Path(os.environ['AZUREML_DATAREFERENCE_results']) / 'made.txt').write_text('there')"
    )
    out = store.path("made", "results").as_upload()
    for mode in (store.path("far").as_mount(), store.path("far").as_download()):
        run = submitted(workspace, project(train=script), mode, out)
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        assert (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text() == "read the b\n"
    assert "sent to" not in (home / "runs" / run.id / "azureml-logs" / "30_data_log.txt").read_text()
    assert store.list("made") == ["made/made.txt"]
