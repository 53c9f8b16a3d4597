"""ARCHITECTURE.md is kept true: its picture has the layers of the import contract, its tables what is there."""

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


def test_the_picture_has_every_layer_in_its_order() -> None:
    picture = PAGE[PAGE.index("```text") : PAGE.index("```\n", PAGE.index("```text") + 7)].splitlines()
    places = []
    for rooms in layers():
        found = {next((n for n, line in enumerate(picture) if re.search(rf"\b{room}\b", line)), -1) for room in rooms}
        assert len(found) == 1, f"{' and '.join(rooms)} are not on one line of the picture"
        places.append(found.pop())
    assert -1 not in places
    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_every_room_has_its_line() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert sorted(room for room in rooms if f"\n| `{room}` |" not in PAGE) == []


def test_every_file_on_the_path_of_a_run_is_there() -> None:
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.py)?)`", PAGE)
    assert len(named) > 15
    assert [name for name in named if not (PACKAGE / name).exists()] == []
