"""What the processes of a run write to their agent: the launcher, the ranks, and a script that writes anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.agent.process.scratch import Scratch
from runyard.agent.rendezvous.messaging import NoPeers
from runyard.agent.rendezvous.wakeup_pipe import WakeupPipe
from runyard.agent.supervise.mpi_rank_group import MpiRankGroup
from runyard.launch.order import Node, WorkOrder
from runyard.launch.plan import make_world, plan
from runyard.spec.folder import RunFolder
from runyard.spec.launch import Mpi

pytestmark = pytest.mark.usefixtures("sigio_ignored")


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[MpiRankGroup]:
    folder = RunFolder(tmp_path)
    order = WorkOrder("run_1", str(tmp_path), ("python",), nodes=(Node("a"), Node("b")), launch=Mpi(), secret="x")
    world = make_world(order, [("1",), ()])
    scratch = Scratch("test_mpi_reports", 0)
    (tmp_path / "nodes" / "0").mkdir(parents=True)
    group = MpiRankGroup(plan(Mpi(), world, 0, ("python",), {}), folder, order, world, scratch, "", NoPeers(), "")
    yield group
    scratch.clear()


def test_the_reports_of_ranks_are_read(ranks: MpiRankGroup, tmp_path: Path) -> None:
    exits = tmp_path / "nodes" / "0" / "exits"
    exits.write_text("began 0 77\nnonsense\nbegan x y\nbegan 0\n\xff\n", encoding="latin-1")
    ranks.handle_wakeup([])
    assert ranks.pids == {0: 77}
    with open(exits, "a") as file:
        file.write("ended 0 3\n")
    ranks.handle_wakeup([])
    assert [end.exit_code for end in ranks.take_new_ends()] == [3]


LINES = st.text() | st.builds(" ".join, st.lists(st.sampled_from(["began", "ended", "run", "-1", "9" * 30, "x", "٣"])))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES))
def test_no_line_raises(ranks: MpiRankGroup, tmp_path: Path, lines: list[str]) -> None:
    with open(tmp_path / "nodes" / "0" / "exits", "a", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(f"{line}\n" for line in lines)
    ranks.handle_wakeup(lines)


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    pipe = WakeupPipe(tmp_path)
    writer = os.open(pipe.path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        for _ in range(40):
            os.write(writer, b"x" * 60_000)
            assert pipe.read_lines() == []
        assert len(pipe._partial_line) < 2 << 20
        os.write(writer, b"\nrun 1 true\n")
        assert pipe.read_lines()[-1] == "run 1 true"
    finally:
        os.close(writer)
        pipe.close()
