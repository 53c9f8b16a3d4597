from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runyard.snapshots import Snapshot, freeze

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Snapshot]


def paths(snapshot: Snapshot) -> set[str]:
    return {entry.path for entry in snapshot.manifest.entries}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("git") / "repository"
    _git(root.parent, "init", "-q", str(root))
    return root


def _git(folder: Path, *arguments: str) -> bytes:
    environment = {
        "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)
    }  # fmt: skip
    return subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True).stdout


def _files_of_git(repository: Path) -> set[bytes]:
    return set(_git(repository, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")) - {b""}


NAMES = st.sampled_from(["a", "b", "ab", "abc", "A", "a b", "a ", "é", "[a", "a]", "#a", "!a", "a\\", ".a", "a.b", "-"])
CLASSES = ["[ab]", "[!a]", "[^b-z]", "[a", "]", "[]a]", "[[:alpha:]]", "[[:punct:]]", "[[:nope:]]", "[a-"]
STARS = ["*", "**", "?", "**/", "/**"]
PLAIN = ["a", "b", "ab", "c", "/", "/", "\\", "!", "#", " ", "\t", ".", "é", "-", "\\ ", "\\/", "\r"]
PIECES = st.sampled_from([*CLASSES, *STARS, *PLAIN])
PATTERNS = st.lists(PIECES, min_size=1, max_size=6).map("".join)
IGNORE_FILES = st.lists(PATTERNS, max_size=5).map(lambda lines: "\n".join(lines))
FOLDERS = st.lists(NAMES, max_size=3).map("/".join)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.sets(st.tuples(FOLDERS, NAMES), max_size=12), ignores=st.dictionaries(FOLDERS, IGNORE_FILES, max_size=3)
)
@example(files={("foo/x", "bar"), ("", "foo")}, ignores={"": "foo**/bar"})
@example(files={("a/b", "c"), ("a", "keep")}, ignores={"": "a/*\n!a/keep", "a/b": "!c"})
@example(files={("", "a "), ("", "a")}, ignores={"": "a\\ \n"})
@example(files={("", "a")}, ignores={"": "\ufeffa\r\n"})
def test_snapshot_ignores_the_same_files_as_git(
    repository: Path, files: set[tuple[str, str]], ignores: dict[str, str]
) -> None:
    """B11.75."""
    _agree(repository, files, ignores)


@pytest.mark.real
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.sets(st.tuples(FOLDERS, NAMES), max_size=15), ignores=st.dictionaries(FOLDERS, IGNORE_FILES, max_size=3)
)
def test_snapshot_ignores_the_same_files_as_git_long(
    repository: Path, files: set[tuple[str, str]], ignores: dict[str, str]
) -> None:
    _agree(repository, files, ignores)


def _agree(repository: Path, files: set[tuple[str, str]], ignores: dict[str, str]) -> None:
    for entry in repository.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for folder, name in sorted(files):
        _write(repository, folder, name, b"content")
    for folder, content in ignores.items():
        _write(repository, folder, ".gitignore", content.encode())
    snapshot = freeze(repository, index_folder=repository.parent / "index")
    files_of_snapshot = {os.fsencode(entry.path) for entry in snapshot.manifest.entries if entry.kind == "file"}
    assert files_of_snapshot == _files_of_git(repository)


def _write(root: Path, folder: str, name: str, content: bytes) -> None:
    """Skips random paths whose parent is a file, or that are folders already."""
    path = root / folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError:
        return


def test_amlignore_replaces_gitignore_in_every_folder(project: Project, freeze_folder: Freeze) -> None:
    """B11.75."""
    root = project(
        {".amlignore": b"*.csv\n", ".gitignore": b"*.py\n", "a.csv": b"", "a.py": b"", "sub/.gitignore": b"*\n"}
        | {"sub/b.py": b""}
    )
    assert paths(freeze_folder(root)) == {".amlignore", ".gitignore", "a.py", "sub/.gitignore", "sub/b.py"}


def test_runyardignore_takes_precedence_over_gitignore(project: Project, freeze_folder: Freeze) -> None:
    root = project(
        {".gitignore": b"*.pt\n", ".runyardignore": b"notes/\n!best.pt\n", "a.pt": b"", "best.pt": b"", "notes/x": b""}
    )
    assert paths(freeze_folder(root)) == {".gitignore", ".runyardignore", "best.pt"}


def test_a_file_in_an_excluded_folder_cannot_be_included(project: Project, freeze_folder: Freeze) -> None:
    root = project({".gitignore": b"data/\n!data/keep\n", "data/keep": b"", "train.py": b""})
    assert paths(freeze_folder(root)) == {".gitignore", "train.py"}


def test_caches_and_virtual_environments_are_always_excluded(project: Project, freeze_folder: Freeze) -> None:
    root = project(
        {"train.py": b"", ".git/HEAD": b"", "__pycache__/train.cpython-311.pyc": b"", "old.pyc": b""}
        | {"pkg/.ipynb_checkpoints/x": b"", "my env/pyvenv.cfg": b"", "my env/bin/python": b""}
        | {"conda/conda-meta/history": b"", ".runyardignore": b"!*.pyc\n!__pycache__/\n"}
    )
    assert paths(freeze_folder(root)) == {"train.py", ".runyardignore"}


def test_a_folder_that_is_itself_a_virtual_environment_is_still_frozen(project: Project, freeze_folder: Freeze) -> None:
    assert paths(freeze_folder(project({"pyvenv.cfg": b"", "train.py": b""}))) == {"pyvenv.cfg", "train.py"}


def test_an_ignore_file_that_is_a_link_is_not_followed(project: Project, freeze_folder: Freeze, tmp_path: Path) -> None:
    root = project({"train.py": b"", "rules": b"*.py\n"})
    (root / ".gitignore").symlink_to("rules")
    assert "train.py" in paths(freeze_folder(root))


def test_changed_ignore_rules_apply_to_unchanged_files(project: Project, freeze_folder: Freeze) -> None:
    root = project({"a.csv": b"", "train.py": b""})
    assert "a.csv" in paths(freeze_folder(root))
    project({".runyardignore": b"*.csv\n"})
    assert "a.csv" not in paths(freeze_folder(root))
