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
from runyard.snapshots import Manifest, Snapshot, freeze

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Snapshot]
PRIVATE_KEY = b"-----BEGIN PRIVATE KEY-----\n"


def paths(snapshot: Snapshot) -> list[str]:
    return [entry.path for entry in snapshot.manifest.entries]


def settle(root: Path) -> None:
    """Wait until all files are old enough to be recognized by their stat."""
    newest = max(path.lstat().st_ctime for path in root.rglob("*"))
    pause = threading.Event()
    while _now() < newest + 2.05:
        pause.wait(0.05)


def _now() -> float:
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_ctime


def test_the_id_depends_only_on_names_contents_and_modes(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b"print(1)", "pkg/a.py": b""})
    first = freeze_folder(root)
    os.utime(root / "train.py", (1, 1))
    assert freeze_folder(root).id == first.id
    other = root.with_name("elsewhere")
    shutil.copytree(root, other)
    assert freeze_folder(other).id == first.id
    (root / "train.py").chmod(0o755)
    assert freeze_folder(root).id != first.id
    (root / "train.py").chmod(0o644)
    (root / "train.py").write_bytes(b"print(2)")
    assert freeze_folder(root).id != first.id


@pytest.mark.real
def test_an_unchanged_folder_is_frozen_without_reading_files(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b"print(1)", "pkg/a.py": b"", "data.bin": b"x" * 2_000_000})
    settle(root)
    first = freeze_folder(root)
    again = freeze_folder(root)
    assert (first.files_hashed, again.files_hashed) == (3, 0)
    assert again.id == first.id
    (root / "pkg/a.py").write_bytes(b"new")
    third = freeze_folder(root)
    assert third.files_hashed == 1
    assert third.id != first.id


def test_a_recently_written_file_is_read_again(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b"print(1)"})
    first = freeze_folder(root)
    (root / "train.py").write_bytes(b"print(2)")  # the same size, maybe within one tick of the clock
    assert freeze_folder(root).id != first.id


@pytest.mark.parametrize("damage", [b"", b"garbage", b"runyard index 1\n" + b"\0" * 90])
def test_a_damaged_index_is_ignored(project: Project, freeze_folder: Freeze, tmp_path: Path, damage: bytes) -> None:
    root = project({"train.py": b"print(1)"})
    os.utime(root / "train.py")
    first = freeze_folder(root)
    for index in (tmp_path / "index").iterdir():
        index.write_bytes(damage)
    assert freeze_folder(root) == first


def test_an_index_of_another_folder_is_ignored(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    freeze_folder(project({"train.py": b"print(1)"}))
    (first,) = (tmp_path / "index").iterdir()
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_bytes(b"print(1)")
    expected = freeze_folder(other)
    (second,) = set((tmp_path / "index").iterdir()) - {first}
    shutil.copy(first, second)
    assert freeze_folder(other).manifest == expected.manifest


def test_odd_names_survive(tmp_path: Path, freeze_folder: Freeze) -> None:
    root = tmp_path / "project"
    root.mkdir()
    names = [b"new\nline", b"not utf8 \xff\xfe", b" space ", "ünï→".encode(), b"-rf", b"quote'\"", b"tab\t", b"\\"]
    for name in names:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(name)
    snapshot = freeze_folder(root)
    again = Manifest.from_bytes(snapshot.manifest.to_bytes())
    assert {os.fsencode(entry.path) for entry in again.entries} == set(names)
    assert again.id == snapshot.id


def test_only_empty_folders_are_entries(project: Project, freeze_folder: Freeze) -> None:
    snapshot = freeze_folder(project({"empty/": b"", "full/a": b""}))
    assert [(entry.path, entry.kind) for entry in snapshot.manifest.entries] == [("empty", "dir"), ("full/a", "file")]


def test_links_inside_the_folder_stay_links(project: Project, freeze_folder: Freeze) -> None:
    root = project({"pkg/a.py": b"", "data/x": b""})
    (root / "a.py").symlink_to("pkg/a.py")
    (root / "pkg/data").symlink_to("../data")
    (root / "later").symlink_to("outputs/model")
    (root / "absolute").symlink_to(root / "pkg" / "a.py")
    snapshot = freeze_folder(root)
    links = {entry.path: entry.target for entry in snapshot.manifest.entries if entry.kind == "link"}
    assert links == {"a.py": "pkg/a.py", "pkg/data": "../data", "later": "outputs/model", "absolute": "pkg/a.py"}
    assert snapshot.warnings == ()


def test_links_to_outside_are_excluded_with_a_warning(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    root = project({"train.py": b""})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"")
    (root / "data").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("../outside/secret")
    (root / "hop").symlink_to("data/secret")
    snapshot = freeze_folder(root)
    assert paths(snapshot) == ["train.py"]
    (warning,) = snapshot.warnings
    assert f"data -> {tmp_path}/outside" in warning
    assert "up -> ../outside/secret" in warning
    assert "hop -> data/secret" in warning


def test_a_loop_of_links_does_not_hang(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b""})
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to(".")
    assert "train.py" in paths(freeze_folder(root))


def test_sockets_and_pipes_are_excluded_with_a_warning(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b""})
    os.mkfifo(root / "fifo")
    here = Path.cwd()
    os.chdir(root)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("sock")
    finally:
        os.chdir(here)
    snapshot = freeze_folder(root)
    assert paths(snapshot) == ["train.py"]
    assert snapshot.warnings == ("excluded: fifo (a pipe), sock (a socket)",)


def test_secrets_are_excluded_with_a_warning(project: Project, freeze_folder: Freeze) -> None:
    secrets = {
        ".env": b"", ".env.production": b"", "deep/.env.local": b"", "id_rsa": b"", "id_ed25519": b"", ".netrc": b"",
        ".pypirc": b"", "credentials.json": b"", "my-credentials.json": b"", ".aws/credentials": b"",
        "key.pem": PRIVATE_KEY, "tls.key": PRIVATE_KEY, "service-account.json": b'{"private_key": 1}',
    }  # fmt: skip
    harmless = {
        ".env.example": b"", "id_rsa.pub": b"", "cert.pem": b"-----BEGIN CERTIFICATE-----", "credentials": b"",
        "environment.py": b"", "config.json": b"", "answer.key": b"42", ".envrc": b"",
    }  # fmt: skip
    snapshot = freeze_folder(project({**secrets, **harmless}))
    assert set(paths(snapshot)) == set(harmless)
    (warning,) = snapshot.warnings
    assert ".aws/credentials, .env, .env.production" in warning
    assert "and 3 more" in warning
    assert "add the line !.env to .runyardignore" in warning


def test_a_secret_is_included_only_while_runyardignore_allows_it(project: Project, freeze_folder: Freeze) -> None:
    root = project({".env": b"A=1", ".gitignore": b".env\n", "x.py": b""})
    assert freeze_folder(root).warnings == ()  # ignored by git: no warning needed
    (root / ".gitignore").write_bytes(b"!.env\n")
    assert ".env" not in paths(freeze_folder(root))  # a rule in .gitignore does not allow secrets
    (root / ".runyardignore").write_bytes(b"!.env\n")
    allowed = freeze_folder(root)
    assert ".env" in paths(allowed)
    assert allowed.warnings == ()
    (root / ".runyardignore").unlink()
    assert ".env" not in paths(freeze_folder(root))


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user other than root, because root can read all files."""
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


def test_an_unreadable_file_is_reported_with_a_hint(unprivileged: Path) -> None:
    root = unprivileged / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "locked").write_bytes(b"")
    (root / "sub" / "locked").chmod(0)
    with pytest.raises(SnapshotException, match="cannot read sub/locked: Permission denied") as caught:
        freeze(root, index_folder=unprivileged / "index", pack_to=unprivileged / "pack")
    assert "/sub/locked to .runyardignore" in caught.value.hint
    assert not (unprivileged / "pack").exists()
    (root / ".runyardignore").write_bytes(b"/sub/locked\n")
    assert paths(freeze(root, index_folder=unprivileged / "index")) == [".runyardignore"]


def test_an_unreadable_folder_is_reported_with_a_hint(unprivileged: Path) -> None:
    root = unprivileged / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub").chmod(0)
    try:
        with pytest.raises(SnapshotException, match="cannot read sub/: Permission denied"):
            freeze(root, index_folder=unprivileged / "index")
    finally:
        (root / "sub").chmod(0o700)


def test_an_unwritable_index_does_not_prevent_a_snapshot(unprivileged: Path) -> None:
    root = unprivileged / "project"
    root.mkdir()
    (root / "train.py").write_bytes(b"")
    (unprivileged / "home").mkdir(mode=0o500)
    assert paths(freeze(root, index_folder=unprivileged / "home" / "index")) == ["train.py"]


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_missing_folder_or_a_file_raises(tmp_path: Path, freeze_folder: Freeze, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SnapshotException, match="does not exist" if name == "missing" else "is not a folder"):
        freeze_folder(tmp_path / name)


def test_a_large_snapshot_gets_a_warning_with_the_largest_files(project: Project, freeze_folder: Freeze) -> None:
    root = project({f"f{number}": bytes(300_000 + number * 100_000) for number in range(7)})
    snapshot = freeze_folder(root, cap_mb=1)
    assert len(snapshot.manifest) == 7
    (warning,) = snapshot.warnings
    assert "4.2 MB in 7 files; the largest: f6 (0.9 MB), f5 (0.8 MB), f4 (0.7 MB), f3 (0.6 MB), f2 (0.5 MB)." in warning


def test_the_size_warning_names_only_relevant_files(project: Project, freeze_folder: Freeze) -> None:
    root = project({"train.py": b"print()", "notes.md": bytes(900), "data.bin": bytes(1_500_000)})
    (warning,) = freeze_folder(root, cap_mb=1).warnings
    assert "1.5 MB in 3 files; the largest: data.bin (1.5 MB). " in warning


def test_the_size_warning_names_files_also_if_all_are_small(project: Project, freeze_folder: Freeze) -> None:
    root = project({f"f{number:03}": bytes(10_000) for number in range(150)})
    (warning,) = freeze_folder(root, cap_mb=1).warnings
    assert warning.count("(0.0 MB)") == 5


def test_hashing_many_files_reports_progress(project: Project, freeze_folder: Freeze) -> None:
    messages: list[str] = []
    freeze_folder(project({f"f{number}": b"" for number in range(2100)}), report=messages.append)
    assert messages[0] == "hashing 2,100 files, 0.0 MB"
    freeze_folder(project({"only": b""}).parent / "index", report=messages.append)
    assert len(messages) == 1


@pytest.mark.parametrize("size", [100_000, 3_000_000])
def test_a_file_that_keeps_changing_is_stored_as_read(
    project: Project, freeze_folder: Freeze, tmp_path: Path, size: int
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
        snapshot = freeze_folder(root, pack_to=tmp_path / "pack")
    finally:
        stop.set()
        writer.join()
    (entry,) = snapshot.manifest.entries
    assert entry.size >= size
    assert snapshot.packed == {entry.digest}
    assert snapshot.pack == tmp_path / "pack"


def test_threads_do_not_change_the_snapshot(project: Project, freeze_folder: Freeze) -> None:
    root = project({f"d{number % 7}/f{number}": bytes([number % 251]) * 60_000 for number in range(300)})
    (root / "big").write_bytes(os.urandom(1_500_000))
    snapshot = freeze_folder(root)
    assert snapshot.id == freeze_folder(root).id
    assert len(snapshot.manifest.digests) == 252
