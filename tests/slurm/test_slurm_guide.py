"""The commands of the guide "From laptop to cluster", on a real Slurm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import a_home

sys.path.append(str(Path(__file__).parents[1] / "docs"))
from docs_pages import ROOT, PageRunner, blocks

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("slurm")]


def test_the_commands_of_the_guide_print_what_it_shows(slurm_folder: Path, tmp_path: Path) -> None:
    page = ROOT / "docs" / "guides" / "from-laptop-to-cluster.md"
    selected = [block for block in blocks(page) if block.mark != "not run" or "needs a Slurm" in block.reason]
    assert len([block for block in selected if block.mark]) >= 4
    folder = tmp_path / "hello"
    folder.mkdir()
    with a_home() as home:
        runner = PageRunner(folder, home)
        runner.run(selected)
    assert not runner.problems, "\n\n".join(runner.problems)
