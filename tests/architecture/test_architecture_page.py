"""ARCHITECTURE.md agrees with the import contract and the packages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "runyard"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def layers() -> list[list[str]]:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = project[project.index("\nlayers = [") :]
    return [line.split(" | ") for line in re.findall(r'"([^"]+)"', block[: block.index("]")])]


def test_the_picture_has_every_layer_in_order() -> None:
    picture = PAGE[PAGE.index("```text") : PAGE.index("```\n", PAGE.index("```text") + 7)].splitlines()
    line_numbers = []
    for packages in layers():
        numbers = {next((n for n, line in enumerate(picture) if re.search(rf"\b{p}\b", line)), -1) for p in packages}
        assert len(numbers) == 1, f"{' and '.join(packages)} are not on one line of the picture"
        line_numbers.append(numbers.pop())
    assert -1 not in line_numbers
    assert line_numbers == sorted(line_numbers)
    assert len(set(line_numbers)) == len(line_numbers)


def test_every_package_is_in_the_table() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert sorted(package for package in packages if f"\n| `{package}` |" not in PAGE) == []


def test_every_mentioned_file_exists() -> None:
    names = re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.py)?)`", PAGE)
    assert len(names) > 15
    assert [name for name in names if not (PACKAGE / name).exists()] == []
