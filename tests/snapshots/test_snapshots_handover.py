from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.errors import SnapshotException
from runyard.snapshots import Depot, Frozen, freeze, pack_missing, write_pack
from runyard.snapshots.pack import Pack

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Frozen]


def test_freezing_packs_each_content_once(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    big = os.urandom(1_200_000)
    root = project({"a": b"same", "b": b"same", "big": big, "big copy": big, "empty": b"", "x/c": b"other"})
    frozen = frozen_of(root, pack_to=tmp_path / "new.pack")
    assert frozen.packed == set(frozen.manifest.digests)
    pack = Pack(tmp_path / "new.pack")
    assert len(pack.places) == 4
    assert (tmp_path / "new.pack").stat().st_size < len(big) + 1000
    with pack.open() as opened:
        assert sorted(opened.read(*place) for place in pack.places.items()) == sorted([big, b"", b"other", b"same"])


def test_nothing_new_means_no_pack(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    root = project({"a": b"same"})
    frozen_of(root)
    (root / "b").symlink_to("a")
    frozen = frozen_of(root, pack_to=tmp_path / "new.pack")
    assert frozen.pack is None
    assert not (tmp_path / "new.pack").exists()


def test_only_what_the_depot_lacks_is_handed_over(project: Project, depot: Depot, tmp_path: Path) -> None:
    root = project({"a": b"one", "b": b"two"})
    for number, expected in enumerate([2, 0, 1]):
        if number == 2:
            (root / "c").write_bytes(b"three")
        # without its index everything is packed again; what the depot has is not sent twice
        frozen = freeze(root, index_folder=tmp_path / str(number), pack_to=depot.incoming / "new.pack")
        pack = pack_missing(frozen, depot.missing(frozen.manifest.digests), depot.incoming / "lean.pack")
        assert (len(Pack(pack).places) if pack else 0) == expected
        depot.add(frozen.manifest.to_bytes(), pack)
        assert list(depot.incoming.iterdir()) == []


def test_a_depot_that_lost_everything_is_filled_again(project: Project, frozen_of: Freeze, depot: Depot) -> None:
    root = project({"a": b"one", "b": b"x" * 2_000_000})
    frozen_of(root)
    frozen = frozen_of(root, pack_to=depot.incoming / "new.pack")  # the index says: all of this was there before
    pack = pack_missing(frozen, depot.missing(frozen.manifest.digests), depot.incoming / "lean.pack")
    depot.add(frozen.manifest.to_bytes(), pack)
    assert depot.read(frozen.id, "a") == b"one"


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_file_that_changed_since_it_was_frozen_is_named(
    project: Project, frozen_of: Freeze, tmp_path: Path, size: int
) -> None:
    root = project({"sub/a": b"x" * size})
    frozen = frozen_of(root)
    (root / "sub/a").write_bytes(b"y" * size)
    with pytest.raises(SnapshotException, match="sub/a changed while it was being submitted"):
        write_pack(frozen, frozen.manifest.digests, tmp_path / "pack")
    (root / "sub/a").unlink()
    with pytest.raises(SnapshotException, match="it is gone"):
        write_pack(frozen, frozen.manifest.digests, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_what_was_packed_while_freezing_does_not_need_the_file_any_more(
    project: Project, frozen_of: Freeze, tmp_path: Path
) -> None:
    root = project({"a": b"one", "b": b"two"})
    frozen = frozen_of(root, pack_to=tmp_path / "new.pack")
    (root / "a").write_bytes(b"changed")
    (root / "b").unlink()
    write_pack(frozen, frozen.manifest.digests, tmp_path / "other.pack")
    assert set(Pack(tmp_path / "other.pack").places) == set(Pack(tmp_path / "new.pack").places)


def test_asking_for_a_content_that_is_not_in_the_snapshot_is_an_error(
    project: Project, frozen_of: Freeze, tmp_path: Path
) -> None:
    with pytest.raises(SnapshotException, match="not in this snapshot"):
        write_pack(frozen_of(project({"a": b""})), ["00" * 32], tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_a_pack_cut_off_anywhere_is_known_as_damaged(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    frozen_of(project({"a": b"one", "b": b"two" * 9}), pack_to=tmp_path / "new.pack")
    data = (tmp_path / "new.pack").read_bytes()
    for length in range(len(data)):
        (tmp_path / "cut.pack").write_bytes(data[:length])
        with pytest.raises(SnapshotException, match="damaged"):
            Pack(tmp_path / "cut.pack")


def test_a_changed_byte_anywhere_is_found(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    frozen_of(project({"a": b"one", "b": b"two" * 9}), pack_to=tmp_path / "new.pack")
    data = (tmp_path / "new.pack").read_bytes()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        (tmp_path / "bad.pack").write_bytes(changed)
        with pytest.raises(SnapshotException, match="damaged"):
            _read_everything(tmp_path / "bad.pack")


def _read_everything(path: Path) -> None:
    pack = Pack(path)
    with pack.open() as opened:
        for digest, place in pack.places.items():
            opened.read(digest, place)
