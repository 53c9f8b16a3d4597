"""Every block of the README and the guides does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_pages import ROOT, Desk, blocks, pages, pages_with_samples

from support import a_home

PAGES = pages()
REAL = [page for page in PAGES if any(block.mark == "real" for block in blocks(page))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def work_through(page: Path, folder: Path, *, real: bool, samples_only: bool = False) -> list[str]:
    left_out = ("not run",) if real else ("not run", "real")
    wanted = [block for block in blocks(page) if block.mark not in left_out]
    if samples_only:
        wanted = [block for block in wanted if block.language == "python"]
    folder = folder / "hello"
    folder.mkdir()
    with a_home() as home:
        desk = Desk(folder, home)
        desk.work_through(wanted)
    return desk.problems


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    problems = work_through(page, tmp_path, real=False)
    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize("page", pages_with_samples(), ids=name_of)
def test_the_samples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    problems = work_through(page, tmp_path, real=False, samples_only=True)
    assert not problems, "\n\n".join(problems)


@pytest.mark.real
@pytest.mark.parametrize("page", REAL, ids=name_of)
def test_a_page_prints_what_it_shows_with_its_downloads(page: Path, tmp_path: Path) -> None:
    problems = work_through(page, tmp_path, real=True)
    assert not problems, "\n\n".join(problems)


def test_a_block_that_is_not_run_says_why() -> None:
    marked = [block for page in PAGES for block in blocks(page) if block.mark]
    assert marked
    for block in marked:
        print(f"{block}: {block.mark}: {block.reason}")
        assert len(block.reason) > 10, f"{block} is marked '{block.mark}' without a reason"
