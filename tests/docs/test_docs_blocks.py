"""The code blocks of the README and the guides work as documented."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_pages import ROOT, PageRunner, blocks, pages, pages_with_samples

from support import a_home

PAGES = pages()
REAL = [page for page in PAGES if any(block.mark == "real" for block in blocks(page))]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_page(page: Path, folder: Path, *, real: bool, samples_only: bool = False) -> list[str]:
    excluded = ("not run",) if real else ("not run", "real")
    selected = [block for block in blocks(page) if block.mark not in excluded]
    if samples_only:
        selected = [block for block in selected if block.language == "python"]
    folder = folder / "hello"
    folder.mkdir()
    with a_home() as home:
        runner = PageRunner(folder, home)
        runner.run(selected)
    return runner.problems


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_output_of_a_page_is_as_documented(page: Path, tmp_path: Path) -> None:
    problems = run_page(page, tmp_path, real=False)
    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize("page", pages_with_samples(), ids=page_name)
def test_the_python_samples_of_a_page_work(page: Path, tmp_path: Path) -> None:
    problems = run_page(page, tmp_path, real=False, samples_only=True)
    assert not problems, "\n\n".join(problems)


@pytest.mark.real
@pytest.mark.parametrize("page", REAL, ids=page_name)
def test_the_output_of_a_page_with_downloads_is_as_documented(page: Path, tmp_path: Path) -> None:
    problems = run_page(page, tmp_path, real=True)
    assert not problems, "\n\n".join(problems)


def test_a_block_that_is_not_run_has_a_reason() -> None:
    marked = [block for page in PAGES for block in blocks(page) if block.mark]
    assert marked
    for block in marked:
        assert len(block.reason) > 10, f"{block} is marked '{block.mark}' without a reason"
