from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.errors import SnapshotException
from runyard.snapshots import Entry, Manifest

DIGEST = "ab" * 32
NAMES = st.binary(min_size=1, max_size=6).filter(
    lambda name: not set(name) & {0, ord("/")} and name not in (b".", b"..")
)


@given(st.sets(NAMES, max_size=8), st.booleans(), st.integers(0, 2**62))
def test_every_name_survives_serialization(names: set[bytes], executable: bool, size: int) -> None:
    entries = [Entry(name.decode("utf-8", "surrogateescape"), "file", executable, size, DIGEST) for name in names]
    manifest = Manifest(entries)
    again = Manifest.from_bytes(manifest.to_bytes())
    assert again == manifest
    assert set(again.entries) == set(entries)


def test_the_order_of_entries_does_not_matter() -> None:
    entries = [Entry("b", "dir"), Entry("a", "link", target="b"), Entry("a-", "file", size=1, digest=DIGEST)]
    assert Manifest(entries).id == Manifest(reversed(entries)).id
    assert [entry.path for entry in Manifest(entries).entries] == ["a", "a-", "b"]


def test_digests_have_no_duplicates() -> None:
    manifest = Manifest([Entry("a", "file", digest=DIGEST), Entry("b", "file", digest=DIGEST), Entry("c", "dir")])
    assert manifest.digests == [DIGEST]


def test_an_empty_manifest_has_an_id() -> None:
    assert Manifest.from_bytes(Manifest(()).to_bytes()).id == Manifest(()).id


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "a/..", "..", ".", "a//b", "a/./b", "", "a/", "/", "./a"]
)
def test_a_path_outside_the_folder_is_refused(path: str) -> None:
    data = Manifest([Entry(path, "file", digest=DIGEST), Entry("z", "dir")]).to_bytes()
    with pytest.raises(SnapshotException, match="outside its folder"):
        Manifest.from_bytes(data)


@pytest.mark.parametrize("inside", ["a/b", "a/b/c"])
def test_a_path_through_a_link_is_refused(inside: str) -> None:
    data = Manifest([Entry("a", "link", target="z"), Entry(inside, "file", digest=DIGEST)]).to_bytes()
    with pytest.raises(SnapshotException, match="outside its folder"):
        Manifest.from_bytes(data)


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../x", "b/../../x"])
def test_a_link_that_leads_outside_is_refused(target: str) -> None:
    with pytest.raises(SnapshotException, match="leads outside its folder"):
        Manifest.from_bytes(Manifest([Entry("a", "link", target=target)]).to_bytes())


def test_damaged_bytes_are_refused() -> None:
    data = Manifest([Entry("a", "file", size=5, digest=DIGEST), Entry("b", "dir")]).to_bytes()
    for length in range(len(data)):
        cut = data[:length]
        if cut in (Manifest(()).to_bytes(), Manifest([Entry("a", "file", size=5, digest=DIGEST)]).to_bytes()):
            continue  # cut between two records it is a smaller manifest, with another id
        with pytest.raises(SnapshotException):
            Manifest.from_bytes(cut)
    for wrong in (data.replace(b"\0d\0", b"\0q\0"), data.replace(b"f ab", b"f zz"), data + data[19:], b""):
        with pytest.raises(SnapshotException):
            Manifest.from_bytes(wrong)


def links(**targets: str) -> Manifest:
    """A manifest of links and one file; `__` stands for a slash in their names."""
    entries = [Entry(name.replace("__", "/"), "link", target=target) for name, target in targets.items()]
    return Manifest([*entries, Entry("deep/down/file", "file", digest="0" * 64)])


@pytest.mark.parametrize(
    "targets",
    [
        {"deep__down__up": "../..", "out": "deep/down/up/../secret"},
        {"deep__down__up": "../..", "middle": "deep/down/up", "out": "middle/.."},
        {"here": ".", "out": "here/deep/../../../x"},
        {"deep__a": "..", "b": "deep/a/deep/a/../x"},
    ],
)
def test_a_chain_of_links_that_leads_outside_is_refused(targets: dict[str, str]) -> None:
    with pytest.raises(SnapshotException, match="leads outside"):
        Manifest.from_bytes(links(**targets).to_bytes())


@pytest.mark.parametrize(
    "targets",
    [
        {"deep__down__up": "../..", "inside": "deep/down/up/deep"},
        {"a": "b", "b": "a"},
        {"deep__self": ".", "far": "deep/self/self/self/down"},
        {"back": "deep/down/../down/file"},
    ],
)
def test_a_chain_of_links_that_stays_inside_is_accepted(targets: dict[str, str]) -> None:
    manifest = links(**targets)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


def test_a_manifest_finds_a_file_by_name() -> None:
    manifest = links(a="deep")
    assert manifest.has_file("deep/down/file")
    assert manifest.has_file("a")
    assert not any(map(manifest.has_file, ("deep", "down/file", "file", "", "deep/down/file/", "deep.down.file")))
