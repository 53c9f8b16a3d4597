from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.snapshots import Depot, Frozen, freeze, pack_missing

Tree = dict[str, bytes]


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Tree], Path]:
    """Writes files below a new folder; a name that ends with a slash is an empty folder."""

    def write(files: Tree) -> Path:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        for name, content in files.items():
            path = root / name
            if name.endswith("/"):
                path.mkdir(parents=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return root

    return write


@pytest.fixture
def frozen_of(tmp_path: Path) -> Callable[..., Frozen]:
    def run(root: Path, **options: object) -> Frozen:
        return freeze(root, index_folder=tmp_path / "index", **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def depot(tmp_path: Path) -> Depot:
    return Depot(tmp_path / "depot")


@pytest.fixture
def store(tmp_path: Path, depot: Depot) -> Callable[..., str]:
    """Freezes a folder and hands it over, as a submission does."""

    def run(root: Path, depot: Depot = depot) -> str:
        frozen = freeze(root, index_folder=tmp_path / "index", pack_to=depot.incoming / "first.pack")
        pack = pack_missing(frozen, depot.missing(frozen.manifest.digests), depot.incoming / "second.pack")
        return depot.add(frozen.manifest.to_bytes(), pack)

    return run
