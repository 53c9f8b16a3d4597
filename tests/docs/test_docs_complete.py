"""The reference is complete, and links in the documentation are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_pages import ROOT

from runyard import __version__, errors
from runyard.cli.main import COMMANDS
from runyard.spec.folder import RunFolder

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def read_page(*parts: str) -> str:
    return ROOT.joinpath("docs", *parts).read_text(encoding="utf-8")


def test_every_command_is_in_the_reference() -> None:
    page = read_page("reference", "cli.md")
    assert [command for command in COMMANDS if f"\n## runyard {command}\n" not in page] == []


def test_every_error_is_in_the_reference() -> None:
    page = read_page("reference", "errors.md")
    classes = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(classes) > 10
    assert [name for name in classes if f"\n| `{name}` |" not in page] == []


def test_every_variable_is_in_the_reference() -> None:
    page = read_page("reference", "settings.md")
    variables = {name for path in SOURCES for name in re.findall(r"[\"'](RUNYARD_[A-Z_]+)[\"']", path.read_text())}
    variables |= {name for path in SOURCES for name in re.findall(r"\b(RUNYARD_[A-Z_]+)=", path.read_text())}
    assert "RUNYARD_HOME" in variables
    assert sorted(name for name in variables if f"`{name}`" not in page) == []


def test_every_route_is_in_the_reference() -> None:
    page = read_page("reference", "api.md")
    assert [route for route in routes() if f"`{route}`" not in page] == []


def test_every_route_in_the_reference_exists() -> None:
    existing = routes()
    documented = re.findall(
        r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /api/\S+)` \|", read_page("reference", "api.md"), re.MULTILINE
    )
    assert len(documented) > 20
    assert [route for route in documented if route not in existing] == []


def routes() -> list[str]:
    """Routes such as `GET /api/runs/{run_id}`, read from the decorators, so that no yard is needed."""
    routes = []
    for path in sorted((ROOT / "src" / "runyard" / "server").rglob("*.py")):
        for owner, method, route in re.findall(r"@(router|app)\.(\w+)\(\s*\"([^\"]+)\"", path.read_text()):
            prefix = "/api" if owner == "router" else ""
            routes.append(f"{method.upper()} {prefix}{re.sub(r':[a-z]+}', '}', route)}")
    assert len(routes) > 20
    return routes


def test_every_file_of_a_run_is_in_the_reference() -> None:
    page = read_page("reference", "settings.md")
    folder = RunFolder(Path("run"))
    properties = [name for name, kind in vars(RunFolder).items() if isinstance(kind, property)]
    names = {getattr(folder, name).relative_to("run").as_posix() for name in properties}
    assert sorted(name for name in names if name not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_is_valid(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, heading = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.name}: {target} does not exist"
        assert path.is_relative_to(ROOT), f"{page.name}: {target} is outside the project"
        if heading:
            assert heading in headings(path), f"{page.name}: {path.name} has no heading #{heading}"


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """Anchors of the headings, as code hosting sites generate them."""
    titles = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("folder", ["guides", "concepts", "reference"])
def test_the_readme_links_to_every_page(folder: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "docs" / folder).glob("*.md"))
    assert [page.name for page in pages if f"docs/{folder}/{page.name}" not in readme] == []


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name[:5] for name in names] == [f"{number:04}-" for number in range(1, len(names) + 1)]


def test_the_changelog_has_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
