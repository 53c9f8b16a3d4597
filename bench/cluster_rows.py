"""Slurm and SSH hosts: what the yard adds to a plain `sbatch` and to a plain `ssh`. Both are real, and started here."""

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

from bench.place import Place, as_it_is
from bench.row import Goal, Row, Size, not_measured
from bench.turns import in_turns, seconds_of
from runyard import ComputeTarget, SlurmCompute, SshCompute, Workspace

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # its hosts in network namespaces are the bench's, too

_FIRST_LINE = """\
import time; now = time.monotonic()
import sys
with open(sys.argv[1], "w") as mark:
    mark.write(repr(now))
"""
_SLURM = "submit to the first line on Slurm"
_POLLED = "a look at 200 runs that wait in Slurm"
_SSH = "second run on an SSH host, submit to its end"

_FIRST_PORT = 25_300


def slurm_first_line(place: Place, size: Size) -> Iterator[Row]:
    with _four_nodes(place) as problem:
        if problem:
            yield not_measured(_SLURM, problem)
            return
        folder, mark = place.project("slurm", train=_FIRST_LINE), place.root / "slurm.mark"
        target = ComputeTarget.attach(Workspace(), "bench-slurm", SlurmCompute.attach_configuration("main"))
        config = as_it_is(folder, "train.py", mark)
        config.run_config.target = target
        experiment = place.experiment("slurm")
        command = f"cd {folder} && {sys.executable} train.py {mark}"

        def ours() -> float:
            began = time.monotonic()
            experiment.submit(config).wait_for_completion()
            return float(mark.read_text()) - began

        def bare() -> float:
            began = time.monotonic()
            words = ["sbatch", "--wait", "--partition=main", "--output=/dev/null", f"--wrap={command}"]
            subprocess.run(words, check=True, capture_output=True)
            return float(mark.read_text()) - began

        times = in_turns({"bare": bare, "ours": ours}, min(size.rounds, 9), rest_s=0.2)
        yield Row(_SLURM, times["ours"], ("plain `sbatch`", times["bare"]), Goal(2.5, times=True))


def slurm_polled(place: Place, size: Size) -> Iterator[Row]:
    from runyard.compute.base import Handle
    from runyard.compute.slurm.compute import SlurmCompute as Compute
    from runyard.compute.slurm.options import SlurmOptions
    from runyard.testing.compute import make_order

    with _four_nodes(place) as problem:
        if problem:
            yield not_measured(_POLLED, problem)
            return
        subprocess.run(["scontrol", "update", "PartitionName=main", "State=DOWN"], check=True)
        starting = Compute(SlurmOptions("main"), ROOT / "src")
        handles: list[Handle] = []
        costs = {}
        for count in (2, size.of(200, least=4)):
            for number in range(len(handles), count):
                handles.append(starting.start(make_order(place.root, "pass", run_id=f"run_{number}")))
            looks = {
                # a target of its own for each: one that looked just now would answer from memory
                "ours": seconds_of(lambda: Compute(SlurmOptions("main"), ROOT / "src").status(handles)),
                "bare": seconds_of(lambda: subprocess.run(["squeue"], check=True, capture_output=True)),
            }
            costs[count] = in_turns(looks, min(size.rounds, 15))
        few, many = costs.values()
        note = f"a look at 2 takes {few['ours'].median * 1000:.0f} ms"
        yield Row(_POLLED, many["ours"], ("plain `squeue`", many["bare"]), Goal(2.5, times=True), notes=(note,))


def ssh_second_run(place: Place, size: Size) -> Iterator[Row]:
    from ssh_hosts import ssh_hosts

    if os.geteuid() != 0 or not Path("/usr/sbin/sshd").exists():
        yield not_measured(_SSH, "hosts in network namespaces need root and sshd (scripts/install-sshd)")
        return
    with ssh_hosts(1) as net:
        os.environ["RUNYARD_SSH"] = net.ssh
        try:
            yield _on_host(place, size, net)
        finally:
            del os.environ["RUNYARD_SSH"]


def _on_host(place: Place, size: Size, net: Any) -> Row:
    host = net.hosts[0]
    folder = place.project("ssh", train="print('done')\n")
    target = ComputeTarget.attach(
        Workspace(), "bench-ssh", SshCompute.attach_configuration([host.login], key=str(net.key))
    )
    config = as_it_is(folder, "train.py")
    config.run_config.environment.python.interpreter_path = "python3"
    config.run_config.target = target
    experiment = place.experiment("ssh")
    script = (folder / "train.py").read_bytes()
    bare = [*shlex.split(net.ssh), "-i", str(net.key), "-o", "BatchMode=yes", host.login, "python3 -"]
    contenders = {
        "bare": seconds_of(lambda: subprocess.run(bare, input=script, check=True, capture_output=True)),
        "ours": seconds_of(lambda: experiment.submit(config).wait_for_completion()),
    }
    times = in_turns(contenders, min(size.rounds, 9), rest_s=0.2)
    return Row(_SSH, times["ours"], ("plain `ssh host python`", times["bare"]), Goal(2.5, times=True))


@contextmanager
def _four_nodes(place: Place) -> Iterator[str]:
    """A Slurm of its own; yields why there is none, or nothing."""
    scripts, folder = ROOT / "scripts", place.root / "slurm-of-four"
    here = subprocess.run([scripts / "install-slurm"], capture_output=True, text=True)
    if here.returncode != 0 or os.geteuid() != 0:
        yield "it needs Slurm, and root to start it (scripts/install-slurm)"
        return
    # benches and tests beside this one have a Slurm of their own, and one of them may be in this very process
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
