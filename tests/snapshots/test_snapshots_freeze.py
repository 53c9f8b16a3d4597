from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.errors import SnapshotException
from runyard.snapshots import Frozen, Manifest, freeze

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Frozen]
OLD = b"-----BEGIN PRIVATE KEY-----\n"


def paths(frozen: Frozen) -> list[str]:
    return [entry.path for entry in frozen.manifest.entries]


def settle(root: Path) -> None:
    """Waits until no file is so young that it has to be read again."""
    newest = max(path.lstat().st_ctime for path in root.rglob("*"))
    pause = threading.Event()
    while _now() < newest + 2.05:
        pause.wait(0.05)


def _now() -> float:
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_ctime


def test_the_id_depends_on_names_contents_and_modes_and_on_nothing_else(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b"print(1)", "pkg/a.py": b""})
    first = frozen_of(root)
    os.utime(root / "train.py", (1, 1))
    assert frozen_of(root).id == first.id
    other = root.with_name("elsewhere")
    shutil.copytree(root, other)
    assert frozen_of(other).id == first.id
    (root / "train.py").chmod(0o755)
    assert frozen_of(root).id != first.id
    (root / "train.py").chmod(0o644)
    (root / "train.py").write_bytes(b"print(2)")
    assert frozen_of(root).id != first.id


@pytest.mark.real
def test_an_unchanged_folder_is_frozen_again_without_reading_a_file(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b"print(1)", "pkg/a.py": b"", "data.bin": b"x" * 2_000_000})
    settle(root)
    first = frozen_of(root)
    again = frozen_of(root)
    assert (first.files_hashed, again.files_hashed) == (3, 0)
    assert again.id == first.id
    (root / "pkg/a.py").write_bytes(b"new")
    third = frozen_of(root)
    assert third.files_hashed == 1
    assert third.id != first.id


def test_a_file_of_this_moment_is_read_again_even_if_it_looks_the_same(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b"print(1)"})
    first = frozen_of(root)
    (root / "train.py").write_bytes(b"print(2)")  # the same size, maybe within one tick of the clock
    assert frozen_of(root).id != first.id


@pytest.mark.parametrize("damage", [b"", b"garbage", b"runyard index 1\n" + b"\0" * 90])
def test_a_damaged_index_counts_as_none(project: Project, frozen_of: Freeze, tmp_path: Path, damage: bytes) -> None:
    root = project({"train.py": b"print(1)"})
    os.utime(root / "train.py")
    first = frozen_of(root)
    for index in (tmp_path / "index").iterdir():
        index.write_bytes(damage)
    assert frozen_of(root) == first


def test_an_index_of_another_folder_counts_as_none(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    frozen_of(project({"train.py": b"print(1)"}))
    (first,) = (tmp_path / "index").iterdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_bytes(b"print(1)")
    expected = frozen_of(other)
    (second,) = set((tmp_path / "index").iterdir()) - {first}
    shutil.copy(first, second)
    assert frozen_of(other).manifest == expected.manifest


def test_odd_names_survive(tmp_path: Path, frozen_of: Freeze) -> None:
    root = tmp_path / "project"
    root.mkdir()
    names = [b"new\nline", b"not utf8 \xff\xfe", b" space ", "ünï→".encode(), b"-rf", b"quote'\"", b"tab\t", b"\\"]
    for name in names:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(name)
    frozen = frozen_of(root)
    again = Manifest.from_bytes(frozen.manifest.to_bytes())
    assert {os.fsencode(entry.path) for entry in again.entries} == set(names)
    assert again.id == frozen.id


def test_an_empty_folder_is_an_entry_and_a_full_one_is_not(project: Project, frozen_of: Freeze) -> None:
    frozen = frozen_of(project({"empty/": b"", "full/a": b""}))
    assert [(entry.path, entry.kind) for entry in frozen.manifest.entries] == [("empty", "dir"), ("full/a", "file")]


def test_links_inside_the_folder_stay_links(project: Project, frozen_of: Freeze) -> None:
    root = project({"pkg/a.py": b"", "data/x": b""})
    (root / "a.py").symlink_to("pkg/a.py")
    (root / "pkg/data").symlink_to("../data")
    (root / "later").symlink_to("outputs/model")
    (root / "absolute").symlink_to(root / "pkg" / "a.py")
    frozen = frozen_of(root)
    links = {entry.path: entry.target for entry in frozen.manifest.entries if entry.kind == "link"}
    assert links == {"a.py": "pkg/a.py", "pkg/data": "../data", "later": "outputs/model", "absolute": "pkg/a.py"}
    assert frozen.warnings == ()


def test_links_that_lead_outside_are_left_out_and_named(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    root = project({"train.py": b""})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"")
    (root / "data").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("../outside/secret")
    (root / "hop").symlink_to("data/secret")
    frozen = frozen_of(root)
    assert paths(frozen) == ["train.py"]
    (warning,) = frozen.warnings
    assert f"data -> {tmp_path}/outside" in warning
    assert "up -> ../outside/secret" in warning
    assert "hop -> data/secret" in warning


def test_a_loop_of_links_does_not_hang(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b""})
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to(".")
    assert "train.py" in paths(frozen_of(root))


def test_sockets_and_pipes_are_left_out_and_named(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b""})
    os.mkfifo(root / "fifo")
    here = Path.cwd()
    os.chdir(root)  # a socket's path has to be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("sock")
    finally:
        os.chdir(here)
    frozen = frozen_of(root)
    assert paths(frozen) == ["train.py"]
    assert frozen.warnings == ("left out: fifo (a pipe), sock (a socket)",)


def test_what_looks_like_a_secret_is_left_out_and_named(project: Project, frozen_of: Freeze) -> None:
    secrets = {
        ".env": b"", ".env.production": b"", "deep/.env.local": b"", "id_rsa": b"", "id_ed25519": b"", ".netrc": b"",
        ".pypirc": b"", "credentials.json": b"", "my-credentials.json": b"", ".aws/credentials": b"",
        "key.pem": OLD, "tls.key": OLD, "service-account.json": b'{"private_key": 1}',
    }  # fmt: skip
    harmless = {
        ".env.example": b"", "id_rsa.pub": b"", "cert.pem": b"-----BEGIN CERTIFICATE-----", "credentials": b"",
        "environment.py": b"", "config.json": b"", "answer.key": b"42", ".envrc": b"",
    }  # fmt: skip
    frozen = frozen_of(project({**secrets, **harmless}))
    assert set(paths(frozen)) == set(harmless)
    (warning,) = frozen.warnings
    assert ".aws/credentials, .env, .env.production" in warning
    assert "and 3 more" in warning
    assert "write the line !.env into .runyardignore" in warning


def test_a_secret_comes_along_when_runyardignore_insists_and_only_as_long(project: Project, frozen_of: Freeze) -> None:
    root = project({".env": b"A=1", ".gitignore": b".env\n", "x.py": b""})
    assert frozen_of(root).warnings == ()  # it is ignored in any case: nothing to tell
    (root / ".gitignore").write_bytes(b"!.env\n")
    assert ".env" not in paths(frozen_of(root))  # git's own rules say nothing about secrets
    (root / ".runyardignore").write_bytes(b"!.env\n")
    insisted = frozen_of(root)
    assert ".env" in paths(insisted)
    assert insisted.warnings == ()
    (root / ".runyardignore").unlink()
    assert ".env" not in paths(frozen_of(root))


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user who is not root: root can read everything, so nothing is unreadable for it."""
    root = Path(tempfile.mkdtemp(prefix="ry"))
    if os.geteuid() != 0:
        yield root
        shutil.rmtree(root)
        return
    os.chown(root, 65534, 65534)
    os.seteuid(65534)
    try:
        yield root
    finally:
        os.seteuid(0)
        shutil.rmtree(root)


def test_an_unreadable_file_is_named_with_what_to_do(unprivileged: Path) -> None:
    root = unprivileged / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "locked").write_bytes(b"")
    (root / "sub" / "locked").chmod(0)
    with pytest.raises(SnapshotException, match="sub/locked cannot be read: Permission denied") as caught:
        freeze(root, index_folder=unprivileged / "index", pack_to=unprivileged / "pack")
    assert "/sub/locked into .runyardignore" in caught.value.hint
    assert not (unprivileged / "pack").exists()
    (root / ".runyardignore").write_bytes(b"/sub/locked\n")
    assert paths(freeze(root, index_folder=unprivileged / "index")) == [".runyardignore"]


def test_an_unreadable_folder_is_named_with_what_to_do(unprivileged: Path) -> None:
    root = unprivileged / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub").chmod(0)
    try:
        with pytest.raises(SnapshotException, match="sub/ cannot be read: Permission denied"):
            freeze(root, index_folder=unprivileged / "index")
    finally:
        (root / "sub").chmod(0o700)


def test_an_index_that_cannot_be_written_is_no_reason_to_refuse(unprivileged: Path) -> None:
    root = unprivileged / "project"
    root.mkdir()
    (root / "train.py").write_bytes(b"")
    (unprivileged / "home").mkdir(mode=0o500)
    assert paths(freeze(root, index_folder=unprivileged / "home" / "index")) == ["train.py"]


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_folder_that_is_none_is_said_clearly(tmp_path: Path, frozen_of: Freeze, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SnapshotException, match="does not exist" if name == "missing" else "is not a folder"):
        frozen_of(tmp_path / name)


def test_above_the_cap_it_names_the_biggest_files_and_goes_on(project: Project, frozen_of: Freeze) -> None:
    root = project({f"f{number}": bytes(300_000 + number * 100_000) for number in range(7)})
    frozen = frozen_of(root, cap_mb=1)
    assert len(frozen.manifest) == 7
    (warning,) = frozen.warnings
    assert "4.2 MB in 7 files; the biggest: f6 (0.9 MB), f5 (0.8 MB), f4 (0.7 MB), f3 (0.6 MB), f2 (0.5 MB)." in warning


def test_above_the_cap_only_files_that_matter_are_named(project: Project, frozen_of: Freeze) -> None:
    root = project({"train.py": b"print()", "notes.md": bytes(900), "data.bin": bytes(1_500_000)})
    (warning,) = frozen_of(root, cap_mb=1).warnings
    assert "1.5 MB in 3 files; the biggest: data.bin (1.5 MB). " in warning


def test_above_the_cap_of_many_small_files_the_biggest_are_named_all_the_same(
    project: Project, frozen_of: Freeze
) -> None:
    root = project({f"f{number:03}": bytes(10_000) for number in range(150)})
    (warning,) = frozen_of(root, cap_mb=1).warnings
    assert warning.count("(0.0 MB)") == 5


def test_reading_a_lot_is_told(project: Project, frozen_of: Freeze) -> None:
    said: list[str] = []
    frozen_of(project({f"f{number}": b"" for number in range(2100)}), say=said.append)
    assert said[0] == "hashing 2,100 files, 0.0 MB"
    frozen_of(project({"only": b""}).parent / "index", say=said.append)
    assert len(said) == 1


@pytest.mark.parametrize("size", [100_000, 3_000_000])
def test_a_file_that_never_stops_changing_is_frozen_as_it_was_read(
    project: Project, frozen_of: Freeze, tmp_path: Path, size: int
) -> None:
    root = project({"log": b"x" * size})
    stop = threading.Event()

    def write() -> None:
        with (root / "log").open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"y")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        frozen = frozen_of(root, pack_to=tmp_path / "pack")
    finally:
        stop.set()
        writer.join()
    (entry,) = frozen.manifest.entries
    assert entry.size >= size
    assert frozen.packed == {entry.digest}
    assert frozen.pack == tmp_path / "pack"


def test_many_files_by_many_threads_give_the_same_snapshot_as_one(project: Project, frozen_of: Freeze) -> None:
    root = project({f"d{number % 7}/f{number}": bytes([number % 251]) * 60_000 for number in range(300)})
    (root / "big").write_bytes(os.urandom(1_500_000))
    frozen = frozen_of(root)
    assert frozen.id == frozen_of(root).id
    assert len(frozen.manifest.digests) == 252
