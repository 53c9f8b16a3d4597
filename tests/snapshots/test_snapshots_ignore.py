from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runyard.snapshots import Frozen, freeze

Project = Callable[[dict[str, bytes]], Path]
Freeze = Callable[..., Frozen]


def paths(frozen: Frozen) -> set[str]:
    return {entry.path for entry in frozen.manifest.entries}


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


def _kept_by_git(repository: Path) -> set[bytes]:
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
def test_what_git_ignores_is_what_a_snapshot_ignores(
    repository: Path, files: set[tuple[str, str]], ignores: dict[str, str]
) -> None:
    """B11.75."""
    _agree(repository, files, ignores)


@pytest.mark.real
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.sets(st.tuples(FOLDERS, NAMES), max_size=15), ignores=st.dictionaries(FOLDERS, IGNORE_FILES, max_size=3)
)
def test_what_git_ignores_is_what_a_snapshot_ignores_at_length(
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
    frozen = freeze(repository, index_folder=repository.parent / "index")
    kept = {os.fsencode(entry.path) for entry in frozen.manifest.entries if entry.kind == "file"}
    assert kept == _kept_by_git(repository)


def _write(root: Path, folder: str, name: str, content: bytes) -> None:
    """Unless one of its parents is a file, or it is itself a folder, by the luck of the draw."""
    path = root / folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError:
        return


def test_amlignore_replaces_gitignore_in_every_folder(project: Project, frozen_of: Freeze) -> None:
    """B11.75."""
    root = project(
        {".amlignore": b"*.csv\n", ".gitignore": b"*.py\n", "a.csv": b"", "a.py": b"", "sub/.gitignore": b"*\n"}
        | {"sub/b.py": b""}
    )
    assert paths(frozen_of(root)) == {".amlignore", ".gitignore", "a.py", "sub/.gitignore", "sub/b.py"}


def test_runyardignore_counts_in_addition_and_has_the_last_word(project: Project, frozen_of: Freeze) -> None:
    root = project(
        {".gitignore": b"*.pt\n", ".runyardignore": b"notes/\n!best.pt\n", "a.pt": b"", "best.pt": b"", "notes/x": b""}
    )
    assert paths(frozen_of(root)) == {".gitignore", ".runyardignore", "best.pt"}


def test_a_file_below_an_excluded_folder_cannot_come_back(project: Project, frozen_of: Freeze) -> None:
    root = project({".gitignore": b"data/\n!data/keep\n", "data/keep": b"", "train.py": b""})
    assert paths(frozen_of(root)) == {".gitignore", "train.py"}


def test_caches_and_virtual_environments_are_never_part_of_it(project: Project, frozen_of: Freeze) -> None:
    root = project(
        {"train.py": b"", ".git/HEAD": b"", "__pycache__/train.cpython-311.pyc": b"", "old.pyc": b""}
        | {"pkg/.ipynb_checkpoints/x": b"", "my env/pyvenv.cfg": b"", "my env/bin/python": b""}
        | {"conda/conda-meta/history": b"", ".runyardignore": b"!*.pyc\n!__pycache__/\n"}
    )
    assert paths(frozen_of(root)) == {"train.py", ".runyardignore"}


def test_a_folder_that_is_itself_a_virtual_environment_is_still_frozen(project: Project, frozen_of: Freeze) -> None:
    assert paths(frozen_of(project({"pyvenv.cfg": b"", "train.py": b""}))) == {"pyvenv.cfg", "train.py"}


def test_an_ignore_file_that_is_a_link_is_not_followed(project: Project, frozen_of: Freeze, tmp_path: Path) -> None:
    root = project({"train.py": b"", "rules": b"*.py\n"})
    (root / ".gitignore").symlink_to("rules")
    assert "train.py" in paths(frozen_of(root))


def test_changed_ignore_rules_count_for_files_that_did_not_change(project: Project, frozen_of: Freeze) -> None:
    root = project({"a.csv": b"", "train.py": b""})
    assert "a.csv" in paths(frozen_of(root))
    project({".runyardignore": b"*.csv\n"})
    assert "a.csv" not in paths(frozen_of(root))
