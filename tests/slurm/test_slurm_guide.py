"""The guide "From laptop to cluster", as a new user would follow it, on a real Slurm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import a_home

sys.path.append(str(Path(__file__).parents[1] / "docs"))
from docs_pages import ROOT, Desk, blocks

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]


def test_the_guide_to_the_cluster_does_what_it_says(slurm_folder: Path, tmp_path: Path) -> None:
    page = ROOT / "docs" / "guides" / "from-laptop-to-cluster.md"
    wanted = [block for block in blocks(page) if block.mark != "not run" or "needs a Slurm" in block.reason]
    assert len([block for block in wanted if block.mark]) >= 4
    folder = tmp_path / "hello"
    folder.mkdir()
    with a_home() as home:
        desk = Desk(folder, home)
        desk.work_through(wanted)
    assert not desk.problems, "\n\n".join(desk.problems)
