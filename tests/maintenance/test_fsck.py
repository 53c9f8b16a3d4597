"""Every kind of damage in a home folder is reported; an intact one has none."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.data.cache import Cache, Leaf
from runyard.environments import cache as env_cache
from runyard.lifecycle.state import End, EndReason, Life, RunState
from runyard.posix import sha256
from runyard.snapshots.freeze import freeze
from runyard.snapshots.store import SnapshotStore
from runyard.spec.folder import HomeFolder
from runyard.store.backups import back_up
from runyard.store.open_store import open_database
from runyard.store.runs import RunRecord, RunStore
from runyard.tracking.artifacts import Artifacts
from runyard.yard.fsck.check import check_home
from runyard.yard.fsck.report import DAMAGE, Finding


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with one of everything that is stored."""
    home = tmp_path / "home"
    folder = HomeFolder(home)
    home.mkdir()
    database = open_database(folder.database)
    artifacts = Artifacts(database, folder.artifacts)
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('training')")
    snapshots = SnapshotStore(folder.snapshots)
    pack = snapshots.incoming / "one.pack"
    snapshot = freeze(project, index_folder=folder.snapshots / "index", pack_to=pack)
    snapshots.add(snapshot.manifest.to_bytes(), pack)
    life = Life(RunState.COMPLETED, End(EndReason.SUCCEEDED))
    record = RunRecord("digits_1", "digits", life, 1.0, spec={"script": "train.py"}, snapshot_id=snapshot.id)
    RunStore(database).insert(record, {}, {})
    folder.run("digits_1").logs.mkdir(parents=True)
    artifacts.put_stream("digits_1", "outputs/model.pt", [b"weights" * 100])
    (model_file,) = [artifacts.put_stream("model:net:1", "net.pt", [b"net"])]
    with database.write() as connection:
        text = f"{model_file.digest}  net.pt\n"
        connection.exec_driver_sql(
            "INSERT INTO models (name, version, registration_id, tags, properties, stage, digest, size, created_at, "
            "changed_at, metrics, data, details) "
            "VALUES ('net', 1, 'x', '{}', '{}', 'none', ?, 3, 0, 0, '{}', '[]', '{}')",
            (sha256.of_text(text),),
        )
    database.close()
    _add_environment(folder.environments / "abc123")
    cache = Cache(folder.data / "cache")
    content = cache.incoming_path("a")
    content.write_bytes(b"data")
    digest = sha256.of_file(content)
    cache.add(digest, content)
    cache.tree([Leaf("a.csv", digest, 4)], lambda leaf: None)
    back_up(folder.database)
    return home


def _add_environment(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/bin/sh")
    package = folder / "lib" / "python3" / "site-packages" / "net"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    info = package.with_name("net-1.0.dist-info")
    info.mkdir()
    empty = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
    (info / "RECORD").write_text(f"net/__init__.py,{empty},0\nnet/__pycache__/x.pyc,,\nnet-1.0.dist-info/RECORD,,\n")
    env_cache.complete(folder, name="e", python="3.11", packages=("net",), lock="net==1.0\n", warnings=())


def damage(path: Path) -> None:
    """Change one byte and keep the file's size and times, as a failing disk does."""
    status = path.stat()
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def stored(home: Path, text: bytes) -> Path:
    (path,) = [path for path in (home / "artifacts").glob("*/*") if path.read_bytes().startswith(text)]
    return path


def findings(home: Path, *, quick: bool = False) -> list[Finding]:
    return check_home(home, quick=quick, on_progress=lambda area: None).findings


def damaged(home: Path, *, quick: bool = False) -> list[tuple[str, str]]:
    return [(finding.area, finding.subject) for finding in findings(home, quick=quick) if finding.level == DAMAGE]


def damage_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)


def test_an_intact_home_has_no_findings(home: Path) -> None:
    assert findings(home) == []
    assert findings(home, quick=True) == []
    areas = {area.name: area.items for area in check_home(home, quick=False, on_progress=lambda area: None).areas}
    assert all(areas.values()), areas
    assert len(areas) == 8


DAMAGE_TO_CONTENTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "an output": (lambda home: stored(home, b"weights"), "stored files: run digits_1: outputs/model.pt"),
    "a file of a model": (lambda home: stored(home, b"net"), "stored files: model net:1: net.pt"),
    "a pack": (lambda home: next((home / "snapshots" / "packs").glob("*.pack")), "snapshots: "),
    "a manifest": (lambda home: next((home / "snapshots" / "manifests").iterdir()), "snapshots: snapshot"),
    "cached data": (lambda home: next((home / "data" / "cache" / "content").glob("*/*")), "data cache: "),
    "a backup": (lambda home: next((home / "backups").iterdir()), "backups: "),
}


@pytest.mark.parametrize("kind", DAMAGE_TO_CONTENTS)
def test_one_changed_byte_is_found(home: Path, kind: str) -> None:
    path_of, expected = DAMAGE_TO_CONTENTS[kind]
    path = path_of(home)
    (damage_page if kind == "a backup" else damage)(path)
    subjects = [f"{area}: {subject}" for area, subject in damaged(home)]
    assert any(subject.startswith(expected) for subject in subjects), subjects
    assert all(finding.remedy for finding in findings(home))


@pytest.mark.parametrize("kind", ["an output", "a manifest"])
def test_a_missing_content_is_found_without_reading(home: Path, kind: str) -> None:
    path_of, _ = DAMAGE_TO_CONTENTS[kind]
    path_of(home).unlink()
    assert damaged(home, quick=True)


def test_a_damaged_database_is_found(home: Path) -> None:
    damage_page(home / "yard.db")
    assert ("database", str(home / "yard.db")) in damaged(home)


@pytest.mark.parametrize("content", [None, b"", b"no database" * 1000])
def test_a_lost_database_is_found_and_the_rest_is_checked(home: Path, content: bytes | None) -> None:
    (home / "yard.db").unlink()
    if content is not None:
        (home / "yard.db").write_bytes(content)
    damage(next((home / "data" / "cache" / "content").glob("*/*")))
    assert {area for area, _ in damaged(home)} == {"database", "data cache"}


def test_a_newer_schema_is_found(home: Path) -> None:
    with sqlite3.connect(home / "yard.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert damaged(home) == [("database", str(home / "yard.db"))]


def test_a_damaged_environment_is_found(home: Path) -> None:
    environment = home / "environments" / "abc123"
    (environment / "lib" / "python3" / "site-packages" / "net" / "__init__.py").write_text("x")
    (finding,) = findings(home)
    assert (finding.subject, finding.problem) == ("environment abc123", "net/__init__.py was changed")
    (environment / "bin" / "python").unlink()
    assert "its interpreter is missing" in findings(home)[0].problem
    (environment / "runyard.json").write_text("{")
    assert "record is missing or damaged" in findings(home)[0].problem


def test_changed_records_of_a_model_are_found(home: Path) -> None:
    with sqlite3.connect(home / "yard.db") as connection:
        connection.execute("UPDATE artifacts SET path = 'other.pt' WHERE run_id = 'model:net:1'")
    assert damaged(home, quick=True) == [("models", "model net:1")]


def test_a_missing_run_folder_and_an_unknown_one_are_found(home: Path) -> None:
    (home / "runs" / "digits_1" / "azureml-logs").rmdir()
    (home / "runs" / "digits_1").rename(home / "runs" / "digits_2")
    subjects = {(finding.level, finding.subject) for finding in findings(home)}
    assert subjects == {("damage", "run digits_1"), ("note", str(home / "runs" / "digits_2"))}


def test_contents_without_an_owner_are_harmless(home: Path) -> None:
    with sqlite3.connect(home / "yard.db") as connection:
        connection.execute("DELETE FROM artifacts WHERE run_id = 'digits_1'")
    (finding,) = findings(home)
    assert (finding.level, "belong to no run or model" in finding.problem) == ("note", True)
    assert damaged(home) == []


def test_an_incomplete_cached_folder_is_found(home: Path) -> None:
    (tree,) = [path for path in (home / "data" / "cache" / "trees").iterdir() if path.is_dir()]
    (tree / "a.csv").unlink()
    assert damaged(home) == [("data cache", str(tree))]
    tree.with_name(f"{tree.name}.json").write_text(json.dumps([]))
    assert "record" in findings(home)[0].problem
