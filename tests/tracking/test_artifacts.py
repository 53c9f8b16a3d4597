from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runyard.errors import HomeUnusable, UserErrorException
from runyard.store.database import Database
from runyard.tracking.artifacts import Artifacts
from runyard.tracking.content_check import check_content
from support import as_nobody

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def artifacts(database: Database, tmp_path: Path) -> Artifacts:
    return Artifacts(database, tmp_path / "artifacts")


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    folder.mkdir()
    return folder


def content(artifacts: Artifacts, path: str, run_id: str = "r") -> bytes:
    source = artifacts.source_of(run_id, path)
    check_content(source.path, str(source.digest), path)
    return source.path.read_bytes()


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def test_a_stored_file_is_independent_of_its_source(artifacts: Artifacts, outputs: Path) -> None:
    source = outputs / "model.pt"
    source.write_bytes(b"weights")
    artifact = artifacts.store_file("r", "./outputs//model.pt", source)
    source.write_bytes(b"changed afterwards")
    assert (artifact.path, artifact.size) == ("outputs/model.pt", 7)
    assert content(artifacts, "outputs/model.pt") == b"weights"
    assert artifacts.names("r") == ["outputs/model.pt"]


def test_equal_contents_are_stored_once(artifacts: Artifacts, tmp_path: Path) -> None:
    big = os.urandom(3 << 20)
    for run_id in ("a", "b"):
        artifacts.put_stream(run_id, "small", [b"same ", b"bytes"])
        artifacts.put_stream(run_id, "big", [big])
    (tmp_path / "big").write_bytes(big)
    artifacts.store_file("c", "again", tmp_path / "big")
    assert len(files_below(tmp_path / "artifacts")) == 2
    assert content(artifacts, "again", "c") == big


def test_storing_a_name_again_replaces_it(artifacts: Artifacts) -> None:
    artifacts.put_stream("r", "log.txt", [b"one"])
    artifacts.put_stream("r", "log.txt", [b"two"])
    assert artifacts.names("r") == ["log.txt"]
    assert content(artifacts, "log.txt") == b"two"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", ".", "a\0b", "outputs/.."])
def test_names_that_lead_out_of_the_run_are_refused(artifacts: Artifacts, path: str) -> None:
    with pytest.raises(UserErrorException, match="invalid name"):
        artifacts.put_stream("r", path, [b"x"])
    with pytest.raises(UserErrorException, match="invalid name"):
        artifacts.source_of("r", path)


def test_an_unknown_file_is_reported_with_the_existing_names(artifacts: Artifacts, outputs: Path) -> None:
    artifacts.put_stream("r", "outputs/model.pt", [b"x"])
    with pytest.raises(UserErrorException, match=r"(?s)no file 'outputs/modle.pt'.*outputs/model.pt"):
        artifacts.source_of("r", "outputs/modle.pt")
    with pytest.raises(UserErrorException, match="there is no file"):
        artifacts.store_file("r", "x", outputs / "missing")
    with pytest.raises(UserErrorException, match="cannot read the file"):
        artifacts.store_file("r", "x", outputs)


@pytest.mark.parametrize("move", [False, True])
def test_a_folder_is_stored_with_subfolders_and_unusual_names(artifacts: Artifacts, outputs: Path, move: bool) -> None:
    names = ["model.pt", "deep/er/x.txt", "with space", "new\nline", "back\\slash", "ünï", "-rf", ".hidden"]
    for name in names:
        path = outputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (outputs / "empty").touch()
    (outputs / "large").write_bytes(bytes(3 << 20))
    with open(os.fsencode(outputs) + b"/bad\xff", "w") as file:
        file.write("odd bytes")
    result = artifacts.store_folder("r", outputs, "outputs", move=move)
    assert result.warnings == []
    expected = sorted(f"outputs/{name}" for name in [*names, "empty", "large", "bad\\xff"])
    assert artifacts.names("r") == expected
    assert content(artifacts, "outputs/bad\\xff") == b"odd bytes"
    assert content(artifacts, "outputs/deep/er/x.txt") == b"deep/er/x.txt"
    assert len(content(artifacts, "outputs/large")) == 3 << 20
    assert bool(files_below(outputs)) is not move


def test_links_inside_are_followed_and_other_entries_get_a_warning(artifacts: Artifacts, outputs: Path) -> None:
    (outputs / "step-5").mkdir()
    (outputs / "step-5" / "model").write_text("five")
    (outputs / "latest").symlink_to("step-5")
    (outputs / "best").symlink_to(outputs / "step-5" / "model")
    (outputs / "dangling").symlink_to("nowhere")
    (outputs / "outside").symlink_to("/etc/hostname")
    (outputs / "step-5" / "up").symlink_to("..")
    os.mkfifo(outputs / "pipe")
    short = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(outputs)  # the path of a socket must be short
    try:
        short.bind("socket")
    finally:
        os.chdir(before)
        short.close()
    result = artifacts.store_folder("r", outputs, "outputs", move=True)
    assert artifacts.names("r") == ["outputs/best", "outputs/latest/model", "outputs/step-5/model"]
    assert {content(artifacts, name) for name in artifacts.names("r")} == {b"five"}
    warnings = "\n".join(sorted(result.warnings))
    for name, reason in {
        "dangling": "a dangling link",
        "outside": "leads out of the folder",
        "step-5/up": "a folder that contains it",
        "pipe": "a pipe",
        "socket": "a socket",
    }.items():
        assert any(line.startswith(name) and reason in line for line in result.warnings), warnings


def test_an_unreadable_file_is_left_out_with_a_warning(artifacts: Artifacts, outputs: Path) -> None:
    (outputs / "secret").write_text("x")
    (outputs / "secret").chmod(0)
    (outputs / "model").write_text("x")
    for folder in (outputs.parent, *(path for path in outputs.parent.rglob("*") if path != outputs / "secret")):
        folder.chmod(0o777)  # the store is also accessed by another user in this test
    with as_nobody(outputs):
        result = artifacts.store_folder("r", outputs, "outputs")
    assert artifacts.names("r") == ["outputs/model"]
    assert "secret was left out" in result.warnings[0]


def test_a_file_with_another_hard_link_is_copied_instead_of_moved(
    artifacts: Artifacts, outputs: Path, tmp_path: Path
) -> None:
    (outputs / "model").write_text("weights")
    (tmp_path / "other name").hardlink_to(outputs / "model")
    artifacts.store_folder("r", outputs, "outputs", move=True)
    (tmp_path / "other name").write_text("overwritten")
    assert content(artifacts, "outputs/model") == b"weights"


def test_threads_can_store_the_same_content_concurrently(artifacts: Artifacts, tmp_path: Path) -> None:
    data = os.urandom(1 << 20)
    begin = threading.Barrier(8)

    def work(number: int) -> None:
        begin.wait()
        artifacts.put_stream("r", f"copy {number}", [data])
        artifacts.put_stream("r", "shared", [data])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # raises errors of the threads
    assert len(artifacts.names("r")) == 9
    assert len(files_below(tmp_path / "artifacts")) == 1


def test_an_interrupted_stream_leaves_no_files(artifacts: Artifacts, tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"some"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        artifacts.put_stream("r", "x", chunks())
    assert artifacts.names("r") == []
    assert files_below(tmp_path / "artifacts") == []


def test_a_full_disk_is_reported_and_leaves_no_partial_files(tmp_path: Path, outputs: Path, database: Database) -> None:
    (outputs / "a").write_bytes(b"small")
    (outputs / "big").write_bytes(os.urandom(4 << 20))
    code = """
import resource, sys
from pathlib import Path
from runyard.errors import HomeUnusable
from runyard.store.database import Database
from runyard.tracking.artifacts import Artifacts
artifacts = Artifacts(Database(Path(sys.argv[1])), Path(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, resource.RLIM_INFINITY))  # simulates a full disk
try:
    artifacts.store_folder("r", Path(sys.argv[3]), "outputs")
except HomeUnusable as error:
    print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", code, str(database.path), str(tmp_path / "artifacts"), str(outputs)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot store the file" in process.stdout
    assert Artifacts(database, tmp_path / "artifacts").names("r") == []
    assert not [path for path in files_below(tmp_path / "artifacts") if path.name.startswith("incoming")]


def test_a_store_path_that_is_a_file_is_reported(database: Database, tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("in the way")
    with pytest.raises(HomeUnusable, match="cannot store the file"):
        Artifacts(database, tmp_path / "artifacts").put_stream("r", "x", [b"x"])
