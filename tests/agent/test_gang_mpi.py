"""Open MPI from a wheel in the environment, on two simulated nodes."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gang_support import make_gang, running
from runyard.lifecycle.state import EndReason
from runyard.spec.launch import Mpi
from runyard.testing.work_orders import wait_until

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mpi")]  # one environment for all

FOREVER = "from mpi4py import MPI\nimport os, time\nMPI.COMM_WORLD.barrier()\nprint('up', os.getpid(), flush=True)\n"


def test_ranks_compute_together_with_separate_logs_and_variables(tmp_path, mpi):
    """B7.42, B7.47."""
    script = (
        "from mpi4py import MPI\nimport json, os, sys\nworld = MPI.COMM_WORLD\n"
        "total = [world.allreduce(world.rank + n) for n in range(20)][0]\n"
        "print(json.dumps([total, world.rank, dict(os.environ), sys.argv[1:]]))"
    )
    arguments = ("$OMPI_COMM_WORLD_RANK/x", "a b'c\"d", "$DATA", "$NO", "", "${RUNYARD_RANK}", "`id`", "é\n")
    gang = make_gang(tmp_path, script, Mpi(), *arguments, processes_per_node=2, variables={"DATA": "/d $x"}, **mpi)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    for rank in range(4):
        total, actual_rank, variables, argv = json.loads(gang.log(f"_rank_{rank}"))
        assert (total, actual_rank) == (6, rank)
        assert argv == [f"{rank}/x", "a b'c\"d", "/d $x", "$NO", "", str(rank), "`id`", "é\n"]
        assert variables["RUNYARD_RANK"] == variables["OMPI_COMM_WORLD_RANK"] == str(rank)
        assert variables["OMPI_COMM_WORLD_SIZE"] == "4"
        assert variables["OMPI_COMM_WORLD_LOCAL_RANK"] == str(rank % 2)
        assert variables["AZUREML_CR_NODE_RANK"] == str(rank // 2)
        assert variables["AZ_BATCH_HOST_LIST"] == "127.0.0.1,127.0.0.1"
        assert variables["AZ_BATCH_MASTER_NODE"].startswith("127.0.0.1:")
        assert "TMPDIR" not in variables
    assert (gang.folder.root / "mpi/hostfile").read_text() == "node-0 slots=2\nnode-1 slots=2\n"
    assert "mpirun" in (gang.folder.root / "mpi/command.txt").read_text()


def test_one_node_with_more_ranks_than_cores(tmp_path, mpi):
    ranks = (os.cpu_count() or 1) + 2
    script = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(1))"
    gang = make_gang(tmp_path, script, Mpi(), nodes=1, processes_per_node=ranks, **mpi)
    with running(gang):
        assert gang.end().reason is EndReason.SUCCEEDED
    assert gang.log("_rank_0") == f"{ranks}\n"


def test_a_failed_rank_is_reported_with_its_traceback(tmp_path, mpi):
    script = FOREVER + "if MPI.COMM_WORLD.rank == 3: raise ValueError('bad lr')\nMPI.COMM_WORLD.barrier()"
    gang = make_gang(tmp_path, script, Mpi(), processes_per_node=2, **mpi)
    # without it, mpi4py waits in MPI_Finalize for ranks that wait for this one
    gang.orders = [replace(order, argv=(mpi["python"], "-m", "mpi4py", "train.py")) for order in gang.orders]
    with running(gang):
        end = gang.end()
    assert end.message == "rank 3 on node-1: ValueError: bad lr (exit code 1); the other 3 processes were stopped"
    assert (end.rank, end.node, end.processes_left, gang.remaining_pids()) == (3, "node-1", 0, [])
    assert end.traceback.endswith("ValueError: bad lr")


def test_a_failure_of_all_ranks_at_import_has_one_end(tmp_path, mpi):
    gang = make_gang(tmp_path, "import no_such_module", Mpi(), processes_per_node=2, **mpi)
    with running(gang):
        end = gang.end()
    assert "No module named 'no_such_module'" in end.message
    assert gang.remaining_pids() == []


def test_a_cancel_gives_mpi_ranks_the_grace_period(tmp_path, mpi):
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), print('saved', flush=True), sys.exit(0)))\n"
        "print('up', flush=True)\ntime.sleep(600)"
    )
    gang = make_gang(tmp_path, script, Mpi(), **mpi)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        gang.agents[0].terminate()
        end = gang.end()
    assert (end.reason, end.processes_left, gang.remaining_pids()) == (EndReason.CANCELED, 0, [])
    assert [gang.log(f"_rank_{rank}") for rank in range(2)] == ["up\nsaved\n"] * 2


def test_a_broken_mpirun_is_a_failed_launch_with_its_message(tmp_path, mpi):
    broken = tmp_path / "mpirun"
    broken.write_text("#!/bin/sh\necho 'libfoo.so: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(0o755)
    gang = make_gang(tmp_path, "", Mpi(), **{**mpi, "mpirun": str(broken)})
    with running(gang):
        end = gang.end()
    assert end.reason is EndReason.LAUNCH_FAILED
    assert "libfoo.so" in end.message


VICTIMS = ("rank", "mpirun", "prted", "node", "lead")


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("victim", VICTIMS)
def test_killing_any_part_leaves_no_processes(tmp_path, mpi, victim, turn):
    gang = make_gang(tmp_path, FOREVER + "time.sleep(600)", Mpi(), processes_per_node=2, **mpi)
    with running(gang):
        gang.wait_for_line(*(f"_rank_{rank}" for rank in range(4)))
        killed_at = time.monotonic()
        if victim == "rank":
            os.kill(int(gang.log("_rank_2").split()[1]), signal.SIGKILL)
        elif victim in ("node", "lead"):
            gang.agents[victim == "node"].kill()
        else:
            os.kill(pids_of_program(gang, victim)[-1], signal.SIGKILL)
        if victim == "lead":
            assert gang.agents[1].wait(timeout=60) == 0
            wait_until(lambda: not gang.remaining_pids(), "all processes to end")
            end = None
        else:
            end = gang.end()
        assert time.monotonic() - killed_at < 60
        if end is not None:
            assert (end.processes_left, gang.remaining_pids()) == (0, [])
            assert end.reason is (EndReason.NODE_LOST if victim == "node" else EndReason.KILLED)
    if victim == "rank":
        assert (end.rank, end.node, end.signal) == (2, "node-1", "SIGKILL")
    elif victim == "mpirun":
        assert end.message == "mpirun was killed by SIGKILL"
    elif victim == "prted":
        assert end.message.startswith("the MPI daemon of node-")


def pids_of_program(gang, name):
    """Processes of the run by the name of their program."""
    programs = {"mpirun": ("mpirun", "prterun"), "prted": ("prted",)}[name]
    return [pid for pid in gang.remaining_pids() if Path(f"/proc/{pid}/comm").read_text().strip() in programs]
