"""Every promise of the concept page is linked to a test that exists."""

from __future__ import annotations

import ast
import re

import pytest
from docs_pages import ROOT

PAGE = ROOT / "docs/concepts/promises.md"
LINK = re.compile(r'\]\((\.\./\.\./tests/[^ )]+) "(\w+)"\)')
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| fault")]


def test_the_page_lists_promises() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_promise_is_linked_to_a_test(row: str) -> None:
    match = LINK.search(row)
    assert match, "no link to a test"
    module = ast.parse((PAGE.parent / match[1]).resolve().read_text())
    tests = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    assert match[2] in tests
