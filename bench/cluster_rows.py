"""Time that the yard adds to `sbatch` and to `ssh`, measured on a Slurm cluster and an SSH host started here."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.rounds import measure_rounds, timed
from bench.row import Goal, Row, Size, not_measured
from bench.sandbox import Sandbox, script_config
from runyard import ComputeTarget, SlurmCompute, SshCompute, Workspace

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # for the hosts in network namespaces

_FIRST_LINE = """\
import time; now = time.monotonic()
import sys
with open(sys.argv[1], "w") as mark:
    mark.write(repr(now))
"""
_SLURM = "submit to the script's first line on Slurm"
_STATUS = "status of 200 runs in Slurm's queue"
_SSH = "second run on an SSH host, submit to end"

_FIRST_PORT = 25_300


def slurm_first_line(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    with _slurm_cluster(sandbox) as problem:
        if problem:
            yield not_measured(_SLURM, problem)
            return
        folder, mark = sandbox.project("slurm", train=_FIRST_LINE), sandbox.root / "slurm.mark"
        target = ComputeTarget.attach(Workspace(), "bench-slurm", SlurmCompute.attach_configuration("main"))
        config = script_config(folder, "train.py", mark)
        config.run_config.target = target
        experiment = sandbox.experiment("slurm")
        command = f"cd {folder} && {sys.executable} train.py {mark}"

        def ours() -> float:
            started_at = time.monotonic()
            experiment.submit(config).wait_for_completion()
            return float(mark.read_text()) - started_at

        def bare() -> float:
            started_at = time.monotonic()
            words = ["sbatch", "--wait", "--partition=main", "--output=/dev/null", f"--wrap={command}"]
            subprocess.run(words, check=True, capture_output=True)
            return float(mark.read_text()) - started_at

        times = measure_rounds({"bare": bare, "ours": ours}, min(size.rounds, 9), rest_s=0.2)
        yield Row(_SLURM, times["ours"], ("plain `sbatch`", times["bare"]), Goal(2.5, relative=True))


def slurm_status(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    from runyard.compute.base import Handle
    from runyard.compute.slurm.compute import SlurmCompute as Compute
    from runyard.compute.slurm.options import SlurmOptions
    from runyard.testing.work_orders import make_order

    with _slurm_cluster(sandbox) as problem:
        if problem:
            yield not_measured(_STATUS, problem)
            return
        subprocess.run(["scontrol", "update", "PartitionName=main", "State=DOWN"], check=True)
        starting = Compute(SlurmOptions("main"), ROOT / "src")
        handles: list[Handle] = []
        costs = {}
        for count in (2, size.scaled(200, minimum=4)):
            for number in range(len(handles), count):
                handles.append(starting.start(make_order(sandbox.root, "pass", run_id=f"run_{number}")))
            contenders = {
                # a new target each time: an existing one would return a cached status
                "ours": timed(lambda: Compute(SlurmOptions("main"), ROOT / "src").status(handles)),
                "bare": timed(lambda: subprocess.run(["squeue"], check=True, capture_output=True)),
            }
            costs[count] = measure_rounds(contenders, min(size.rounds, 15))
        few, many = costs.values()
        note = f"status of 2 runs: {few['ours'].median * 1000:.0f} ms"
        yield Row(_STATUS, many["ours"], ("plain `squeue`", many["bare"]), Goal(2.5, relative=True), notes=(note,))


def ssh_second_run(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    from ssh_hosts import ssh_hosts

    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        yield not_measured(_SSH, "hosts in network namespaces need root and sshd (scripts/install-sshd)")
        return
    with ssh_hosts(1) as net:
        os.environ["RUNYARD_SSH"] = net.ssh
        try:
            yield _measure_ssh(sandbox, size, net)
        finally:
            del os.environ["RUNYARD_SSH"]


def _measure_ssh(sandbox: Sandbox, size: Size, net: Any) -> Row:
    host = net.hosts[0]
    folder = sandbox.project("ssh", train="print('done')\n")
    target = ComputeTarget.attach(
        Workspace(), "bench-ssh", SshCompute.attach_configuration([host.login], key=str(net.key))
    )
    config = script_config(folder, "train.py")
    config.run_config.environment.python.interpreter_path = "python3"
    config.run_config.target = target
    experiment = sandbox.experiment("ssh")
    script = (folder / "train.py").read_bytes()
    bare = [*shlex.split(net.ssh), "-i", str(net.key), "-o", "BatchMode=yes", host.login, "python3 -"]
    contenders = {
        "bare": timed(lambda: subprocess.run(bare, input=script, check=True, capture_output=True)),
        "ours": timed(lambda: experiment.submit(config).wait_for_completion()),
    }
    times = measure_rounds(contenders, min(size.rounds, 9), rest_s=0.2)
    return Row(_SSH, times["ours"], ("plain `ssh host python`", times["bare"]), Goal(2.5, relative=True))


@contextmanager
def _slurm_cluster(sandbox: Sandbox) -> Iterator[str]:
    """Start a Slurm cluster of four nodes; yield the reason if that is not possible, else an empty text."""
    scripts, folder = ROOT / "scripts", sandbox.root / "slurm-of-four"
    here = subprocess.run([scripts / "install-slurm"], capture_output=True, text=True)
    if here.returncode != 0 or os.geteuid() != 0:
        yield "it needs Slurm, and root to start it (scripts/install-slurm)"
        return
    # concurrent benchmarks and tests run other Slurm clusters, possibly in this process
    first_port = str(_FIRST_PORT + os.getpid() % 500 * 10)
    before = os.environ.get("SLURM_CONF")
    subprocess.run([scripts / "start-slurm", "start", folder, first_port], check=True, capture_output=True)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        yield ""
    finally:
        subprocess.run([scripts / "start-slurm", "stop", folder], check=True, capture_output=True)
        del os.environ["SLURM_CONF"]
        if before is not None:
            os.environ["SLURM_CONF"] = before
