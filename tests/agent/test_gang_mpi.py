"""Open MPI from an environment's own wheel, over two played nodes."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gang_support import a_gang, running
from runyard.lifecycle.state import EndReason
from runyard.spec.launch import Mpi
from runyard.testing.compute import wait_until

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mpi")]  # one environment for all

FOREVER = "from mpi4py import MPI\nimport os, time\nMPI.COMM_WORLD.barrier()\nprint('up', os.getpid(), flush=True)\n"


def test_ranks_compute_together_each_with_its_own_log_and_variables(tmp_path, mpi):
    """B7.42, B7.47."""
    script = (
        "from mpi4py import MPI\nimport json, os, sys\nworld = MPI.COMM_WORLD\n"
        "total = [world.allreduce(world.rank + n) for n in range(20)][0]\n"
        "print(json.dumps([total, world.rank, dict(os.environ), sys.argv[1:]]))"
    )
    arguments = ("$OMPI_COMM_WORLD_RANK/x", "a b'c\"d", "$DATA", "$NO", "", "${RUNYARD_RANK}", "`id`", "é\n")
    gang = a_gang(tmp_path, script, Mpi(), *arguments, processes_per_node=2, variables={"DATA": "/d $x"}, **mpi)
    with running(gang):
        end = gang.end()
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    for rank in range(4):
        total, seen, variables, words = json.loads(gang.log(f"_rank_{rank}"))
        assert (total, seen) == (6, rank)
        assert words == [f"{rank}/x", "a b'c\"d", "/d $x", "$NO", "", str(rank), "`id`", "é\n"]
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
    gang = a_gang(tmp_path, script, Mpi(), nodes=1, processes_per_node=ranks, **mpi)
    with running(gang):
        assert gang.end().reason is EndReason.SUCCEEDED
    assert gang.log("_rank_0") == f"{ranks}\n"


def test_the_rank_that_fails_is_named_with_its_traceback(tmp_path, mpi):
    script = FOREVER + "if MPI.COMM_WORLD.rank == 3: raise ValueError('bad lr')\nMPI.COMM_WORLD.barrier()"
    gang = a_gang(tmp_path, script, Mpi(), processes_per_node=2, **mpi)
    # without it, mpi4py waits in MPI_Finalize for ranks that wait for this one
    gang.orders = [replace(order, argv=(mpi["python"], "-m", "mpi4py", "train.py")) for order in gang.orders]
    with running(gang):
        end = gang.end()
    assert end.message == "rank 3 on node-1: ValueError: bad lr (exit code 1); the other 3 processes were stopped"
    assert (end.rank, end.node, end.processes_left, gang.left()) == (3, "node-1", 0, [])
    assert end.traceback.endswith("ValueError: bad lr")


def test_a_script_that_fails_at_import_on_all_ranks_has_one_verdict(tmp_path, mpi):
    gang = a_gang(tmp_path, "import no_such_module", Mpi(), processes_per_node=2, **mpi)
    with running(gang):
        end = gang.end()
    assert "No module named 'no_such_module'" in end.message
    assert gang.left() == []


def test_a_cancel_gives_the_ranks_their_grace(tmp_path, mpi):
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), print('saved', flush=True), sys.exit(0)))\n"
        "print('up', flush=True)\ntime.sleep(600)"
    )
    gang = a_gang(tmp_path, script, Mpi(), **mpi)
    with running(gang):
        gang.wait_for_line("_rank_0", "_rank_1")
        gang.agents[0].terminate()
        end = gang.end()
    assert (end.reason, end.processes_left, gang.left()) == (EndReason.CANCELED, 0, [])
    assert [gang.log(f"_rank_{rank}") for rank in range(2)] == ["up\nsaved\n"] * 2


def test_an_mpirun_that_does_not_work_is_a_failed_launch_in_its_own_words(tmp_path, mpi):
    broken = tmp_path / "mpirun"
    broken.write_text("#!/bin/sh\necho 'libfoo.so: cannot open shared object file' >&2\nexit 127\n")
    broken.chmod(0o755)
    gang = a_gang(tmp_path, "", Mpi(), **{**mpi, "mpirun": str(broken)})
    with running(gang):
        end = gang.end()
    assert end.reason is EndReason.LAUNCH_FAILED
    assert "libfoo.so" in end.message


BLOWS = ("rank", "mpirun", "prted", "node", "lead")


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("blow", BLOWS)
def test_whatever_is_killed_nothing_is_left(tmp_path, mpi, blow, turn):
    gang = a_gang(tmp_path, FOREVER + "time.sleep(600)", Mpi(), processes_per_node=2, **mpi)
    with running(gang):
        gang.wait_for_line(*(f"_rank_{rank}" for rank in range(4)))
        began = time.monotonic()
        if blow == "rank":
            os.kill(int(gang.log("_rank_2").split()[1]), signal.SIGKILL)
        elif blow in ("node", "lead"):
            gang.agents[blow == "node"].kill()
        else:
            os.kill(named(gang, blow)[-1], signal.SIGKILL)
        if blow == "lead":
            assert gang.agents[1].wait(timeout=60) == 0
            wait_until(lambda: not gang.left(), "nothing to be left, though nobody swept")
            end = None
        else:
            end = gang.end()
        took = time.monotonic() - began
        print(f"{blow}: {took:.2f} s; {end and end.message}")
        if end is not None:
            assert (end.processes_left, gang.left()) == (0, [])
            assert end.reason is (EndReason.NODE_LOST if blow == "node" else EndReason.KILLED)
    if blow == "rank":
        assert (end.rank, end.node, end.signal) == (2, "node-1", "SIGKILL")
    elif blow == "mpirun":
        assert end.message == "mpirun was killed by SIGKILL"
    elif blow == "prted":
        assert end.message.startswith("the MPI daemon of node-")


def named(gang, name):
    """Processes of the run by the name of their program."""
    wanted = {"mpirun": ("mpirun", "prterun"), "prted": ("prted",)}[name]
    return [pid for pid in gang.left() if Path(f"/proc/{pid}/comm").read_text().strip() in wanted]
