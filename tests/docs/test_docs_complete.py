"""What the product has is in its documentation, and what the documentation points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_pages import ROOT

from runyard import __version__, errors
from runyard.cli.main import VERBS
from runyard.spec.folder import RunFolder

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(*parts: str) -> str:
    return ROOT.joinpath("docs", *parts).read_text(encoding="utf-8")


def test_every_verb_is_in_the_reference() -> None:
    page = text_of("reference", "cli.md")
    assert [verb for verb in VERBS if f"\n## runyard {verb}\n" not in page] == []


def test_every_error_is_in_the_reference() -> None:
    page = text_of("reference", "errors.md")
    classes = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(classes) > 10
    assert [name for name in classes if f"\n| `{name}` |" not in page] == []


def test_every_variable_is_in_the_reference() -> None:
    page = text_of("reference", "settings.md")
    read = {name for path in SOURCES for name in re.findall(r"[\"'](RUNYARD_[A-Z_]+)[\"']", path.read_text())}
    read |= {name for path in SOURCES for name in re.findall(r"\b(RUNYARD_[A-Z_]+)=", path.read_text())}
    assert "RUNYARD_HOME" in read
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_every_route_is_in_the_reference() -> None:
    page = text_of("reference", "api.md")
    assert [route for route in routes() if f"`{route}`" not in page] == []


def test_every_route_in_the_reference_is_there() -> None:
    known = routes()
    told = re.findall(
        r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /api/\S+)` \|", text_of("reference", "api.md"), re.MULTILINE
    )
    assert len(told) > 20
    assert [route for route in told if route not in known] == []


def routes() -> list[str]:
    """`GET /api/runs/{run_id}`, read from the decorators, so that no yard has to be made for it."""
    found = []
    for path in sorted((ROOT / "src" / "runyard" / "server").rglob("*.py")):
        for owner, verb, place in re.findall(r"@(router|app)\.(\w+)\(\s*\"([^\"]+)\"", path.read_text()):
            prefix = "/api" if owner == "router" else ""
            found.append(f"{verb.upper()} {prefix}{re.sub(r':[a-z]+}', '}', place)}")
    assert len(found) > 20
    return found


def test_every_file_of_a_run_is_in_the_reference() -> None:
    page = text_of("reference", "settings.md")
    folder = RunFolder(Path("run"))
    properties = [name for name, kind in vars(RunFolder).items() if isinstance(kind, property)]
    names = {getattr(folder, name).relative_to("run").as_posix() for name in properties}
    assert sorted(name for name in names if name not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        place, _, heading = target.partition("#")
        path = (page.parent / place).resolve() if place else page
        assert path.exists(), f"{page.name}: there is no {target}"
        assert path.is_relative_to(ROOT), f"{page.name}: {target} leads out of the project"
        if heading:
            assert heading in headings(path), f"{page.name}: {path.name} has no heading #{heading}"


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """As code forges make anchors of them."""
    found = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("folder", ["guides", "concepts", "reference"])
def test_every_page_is_reached_from_the_readme(folder: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "docs" / folder).glob("*.md"))
    assert [page.name for page in pages if f"docs/{folder}/{page.name}" not in readme] == []


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name[:5] for name in names] == [f"{number:04}-" for number in range(1, len(names) + 1)]


def test_the_changelog_has_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
