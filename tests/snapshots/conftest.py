from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.snapshots import Snapshot, SnapshotStore, freeze, pack_missing

Tree = dict[str, bytes]


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Tree], Path]:
    """Writes files to a new folder; a name that ends with a slash is an empty folder."""

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
def freeze_folder(tmp_path: Path) -> Callable[..., Snapshot]:
    def run(root: Path, **options: object) -> Snapshot:
        return freeze(root, index_folder=tmp_path / "index", **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")


@pytest.fixture
def add_snapshot(tmp_path: Path, store: SnapshotStore) -> Callable[..., str]:
    """Creates and uploads a snapshot of a folder, as a submission does."""

    def run(root: Path, store: SnapshotStore = store) -> str:
        snapshot = freeze(root, index_folder=tmp_path / "index", pack_to=store.incoming / "first.pack")
        pack = pack_missing(snapshot, store.missing(snapshot.manifest.digests), store.incoming / "second.pack")
        return store.add(snapshot.manifest.to_bytes(), pack)

    return run
