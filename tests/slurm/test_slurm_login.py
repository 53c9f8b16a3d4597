"""Slurm behind a login node: a yard without Slurm that reaches one by SSH as an ordinary user."""

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

    def disconnect(self) -> None:
        """Kill the server and its connections. Jobs continue."""
        server = int(self.pid_file.read_text())
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for pid in (server, *map(int, children)):
            with suppress(ProcessLookupError):  # a connection may have ended since
                os.kill(pid, signal.SIGKILL)

    def reconnect(self) -> None:
        subprocess.run(self.start, check=True)


@pytest.fixture(scope="module")
def login(slurm_folder: Path) -> Iterator[Login]:
    """A real sshd on this machine, whose sessions have SLURM_CONF; the yard does not."""
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
    login_node = Login(
        "login", home, home / "runyard", base / "sshd.pid", ["/usr/sbin/sshd", "-f", str(base / "sshd_config")]
    )
    login_node.reconnect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_SSH", f"ssh -F {base}/ssh_config")
        yield login_node
    login_node.disconnect()
    eventually(
        lambda: subprocess.run(["userdel", user], capture_output=True).returncode in (0, 6), "the user is deleted"
    )
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def remote(login: Login) -> Iterator[tuple[Workspace, Path]]:
    """A yard without Slurm."""
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        patch.delenv("SLURM_CONF")
        workspace = Workspace()
        configuration = SlurmCompute.attach_configuration("main", login=login.address, folder=str(login.folder))
        ComputeTarget.attach(workspace, "remote", configuration)
        yield workspace, home


def submit(workspace: Workspace, folder: Path, *arguments: object, job: object = None) -> Run:
    config = ScriptRunConfig(
        folder, script="train.py", arguments=list(arguments), compute_target="remote", distributed_job_config=job
    )
    config.run_config.environment.python.user_managed_dependencies = True
    return Experiment(workspace, "remote").submit(config)


def test_a_run_behind_a_login_node_has_metrics_and_files(remote, login: Login, project) -> None:
    workspace, home = remote
    script = (
        "import os\nfrom runyard import Run\nrun = Run.get_context()\nrun.log('loss', 0.5)\n"
        "open('outputs/model.txt', 'w').write('m')\nprint('in', os.getcwd(), 'on', os.environ['SLURMD_NODENAME'])\n"
        "assert os.getuid() != 0"
    )
    run = submit(workspace, project(train=script))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"loss": 0.5}
    assert "outputs/model.txt" in run.get_file_names()
    log = (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text()
    assert log.startswith(f"in {login.folder}")
    assert " on n" in log


def test_a_gang_runs_across_the_nodes(remote, project) -> None:
    workspace, home = remote
    run = submit(
        workspace,
        project(train="import os\nprint('rank', os.environ['RANK'], os.environ['SLURMD_NODENAME'])"),
        job=PyTorchConfiguration("Gloo", process_count=2, node_count=2),
    )
    assert run.wait_for_completion()["status"] == "Completed"
    logs = home / "runs" / run.id / "azureml-logs"
    nodes = {(logs / f"70_driver_log_rank_{rank}.txt").read_text().split()[-1] for rank in range(2)}
    assert len(nodes) == 2


def test_a_run_behind_a_login_node_is_canceled(remote, project) -> None:
    workspace, _ = remote
    run = submit(workspace, project(train="import time\nprint('up', flush=True)\ntime.sleep(600)"))
    eventually(lambda: run.get_status() == "Running", "it runs")
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"


def test_nothing_is_lost_when_the_network_fails_and_the_yard_is_killed(remote, login: Login, project) -> None:
    workspace, home = remote
    gate = login.home / "gate"
    script = (
        "import os, sys, time\nfrom runyard import Run\nrun = Run.get_context()\n"
        "for step in range(200):\n    print('line', step)\n    run.log('step', step)\n    time.sleep(0.01)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    )
    run = submit(workspace, project(train=script), gate)
    log = home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt"
    eventually(lambda: log.exists() and "line 20" in log.read_text(), "it runs")
    login.disconnect()
    stop_yard(home, signal.SIGKILL)
    remote_log = next(login.folder.rglob(f"runs/{run.id}/azureml-logs/70_driver_log.txt"))
    eventually(lambda: "line 199" in remote_log.read_text(), "the job continues")
    login.reconnect()
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert log.read_text().splitlines() == [f"line {step}" for step in range(200)]
    assert run.get_metrics()["step"] == list(range(200))


def test_an_invalid_login_node_or_partition_is_refused(remote, login: Login) -> None:
    workspace, _ = remote
    with pytest.raises(ComputeTargetException, match="Slurm has no partition 'nope'"):
        ComputeTarget.attach(workspace, "b", SlurmCompute.attach_configuration("nope", login=login.address))
    with pytest.raises(ComputeTargetException, match="elsewhere"):
        ComputeTarget.attach(workspace, "c", SlurmCompute.attach_configuration("main", login="me@elsewhere.invalid"))


def test_data_is_sent_to_the_login_node_once_and_outputs_are_uploaded(remote, project, tmp_path: Path) -> None:
    workspace, home = remote
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
        run = submit(workspace, project(train=script), mode, out)
        assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()["error"]
        assert (home / "runs" / run.id / "azureml-logs" / "70_driver_log.txt").read_text() == "read the b\n"
    assert "sent to" not in (home / "runs" / run.id / "azureml-logs" / "30_data_log.txt").read_text()
    assert store.list("made") == ["made/made.txt"]
