from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.errors import SnapshotException
from runyard.snapshots import Snapshot, SnapshotStore, freeze, pack_missing, write_pack
from runyard.snapshots.pack import Pack

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Snapshot]


def test_freezing_packs_each_content_once(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    big = os.urandom(1_200_000)
    root = project({"a": b"same", "b": b"same", "big": big, "big copy": big, "empty": b"", "x/c": b"other"})
    snapshot = freeze_folder(root, pack_to=tmp_path / "new.pack")
    assert snapshot.packed == set(snapshot.manifest.digests)
    pack = Pack(tmp_path / "new.pack")
    assert len(pack.locations) == 4
    assert (tmp_path / "new.pack").stat().st_size < len(big) + 1000
    with pack.open() as pack_file:
        assert sorted(pack_file.read(*location) for location in pack.locations.items()) == sorted(
            [big, b"", b"other", b"same"]
        )


def test_nothing_new_means_no_pack(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    root = project({"a": b"same"})
    freeze_folder(root)
    (root / "b").symlink_to("a")
    snapshot = freeze_folder(root, pack_to=tmp_path / "new.pack")
    assert snapshot.pack is None
    assert not (tmp_path / "new.pack").exists()


def test_only_missing_contents_are_uploaded(project: Project, store: SnapshotStore, tmp_path: Path) -> None:
    root = project({"a": b"one", "b": b"two"})
    for number, expected in enumerate([2, 0, 1]):
        if number == 2:
            (root / "c").write_bytes(b"three")
        # without an index all contents are packed again, but stored ones are not uploaded twice
        snapshot = freeze(root, index_folder=tmp_path / str(number), pack_to=store.incoming / "new.pack")
        pack = pack_missing(snapshot, store.missing(snapshot.manifest.digests), store.incoming / "lean.pack")
        assert (len(Pack(pack).locations) if pack else 0) == expected
        store.add(snapshot.manifest.to_bytes(), pack)
        assert list(store.incoming.iterdir()) == []


def test_an_empty_store_receives_all_contents_again(
    project: Project, freeze_folder: Freeze, store: SnapshotStore
) -> None:
    root = project({"a": b"one", "b": b"x" * 2_000_000})
    freeze_folder(root)
    snapshot = freeze_folder(
        root, pack_to=store.incoming / "new.pack"
    )  # according to the index, all contents were stored before
    pack = pack_missing(snapshot, store.missing(snapshot.manifest.digests), store.incoming / "lean.pack")
    store.add(snapshot.manifest.to_bytes(), pack)
    assert store.read(snapshot.id, "a") == b"one"


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_file_changed_since_the_snapshot_is_reported(
    project: Project, freeze_folder: Freeze, tmp_path: Path, size: int
) -> None:
    root = project({"sub/a": b"x" * size})
    snapshot = freeze_folder(root)
    (root / "sub/a").write_bytes(b"y" * size)
    with pytest.raises(SnapshotException, match="sub/a changed during the submission"):
        write_pack(snapshot, snapshot.manifest.digests, tmp_path / "pack")
    (root / "sub/a").unlink()
    with pytest.raises(SnapshotException, match="it was deleted"):
        write_pack(snapshot, snapshot.manifest.digests, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_packed_contents_do_not_need_the_original_files(
    project: Project, freeze_folder: Freeze, tmp_path: Path
) -> None:
    root = project({"a": b"one", "b": b"two"})
    snapshot = freeze_folder(root, pack_to=tmp_path / "new.pack")
    (root / "a").write_bytes(b"changed")
    (root / "b").unlink()
    write_pack(snapshot, snapshot.manifest.digests, tmp_path / "other.pack")
    assert set(Pack(tmp_path / "other.pack").locations) == set(Pack(tmp_path / "new.pack").locations)


def test_requesting_a_content_of_another_snapshot_raises(
    project: Project, freeze_folder: Freeze, tmp_path: Path
) -> None:
    with pytest.raises(SnapshotException, match="not in this snapshot"):
        write_pack(freeze_folder(project({"a": b""})), ["00" * 32], tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_a_truncated_pack_is_detected_at_every_length(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    freeze_folder(project({"a": b"one", "b": b"two" * 9}), pack_to=tmp_path / "new.pack")
    data = (tmp_path / "new.pack").read_bytes()
    for length in range(len(data)):
        (tmp_path / "cut.pack").write_bytes(data[:length])
        with pytest.raises(SnapshotException, match="damaged"):
            Pack(tmp_path / "cut.pack")


def test_a_changed_byte_is_detected_at_every_position(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    freeze_folder(project({"a": b"one", "b": b"two" * 9}), pack_to=tmp_path / "new.pack")
    data = (tmp_path / "new.pack").read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        (tmp_path / "bad.pack").write_bytes(changed)
        with pytest.raises(SnapshotException, match="damaged"):
            _read_everything(tmp_path / "bad.pack")


def _read_everything(path: Path) -> None:
    pack = Pack(path)
    with pack.open() as pack_file:
        for digest, location in pack.locations.items():
            pack_file.read(digest, location)
