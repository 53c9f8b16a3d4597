"""Conda packages from a real channel: a folder that the test makes, solved and linked by rattler."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from runyard.environments.manager import EnvironmentDepot
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec

pytest.importorskip("rattler")
pytestmark = pytest.mark.real

VERSION = sys.version.split()[0]
MINOR = "{}.{}".format(*sys.version_info[:2])
SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[platform.machine()]


class Channel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages: dict[str, dict[str, object]] = {"noarch": {}, SUBDIR: {}}
        self.write()

    @property
    def url(self) -> str:
        return f"file://{self.folder}"

    def add(
        self,
        name: str,
        version: str,
        files: dict[str, str],
        *,
        links: dict[str, str] | None = None,
        depends: tuple[str, ...] = (),
        subdir: str = "noarch",
    ) -> None:
        index: dict[str, object] = {
            "name": name, "version": version, "build": "0", "build_number": 0, "depends": list(depends),
            "subdir": subdir,
        }  # fmt: skip
        if subdir == "noarch":
            index["noarch"] = "generic"
        paths = [
            {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(text.encode()).hexdigest(),
             "size_in_bytes": len(text.encode())}
            for path, text in files.items()
        ] + [{"_path": path, "path_type": "softlink"} for path in links or {}]  # fmt: skip
        info = {
            "info/index.json": json.dumps(index),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
            "info/files": "\n".join([*files, *(links or {})]) + "\n",
        }
        target = self.folder / subdir / f"{name}-{version}-0.tar.bz2"
        with tarfile.open(target, "w:bz2") as archive:
            for path, text in {**info, **files}.items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(text.encode()), 0o644
                archive.addfile(entry, io.BytesIO(text.encode()))
            for path, place in (links or {}).items():
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname = tarfile.SYMTYPE, place
                archive.addfile(entry)
        content = target.read_bytes()
        self.packages[subdir][target.name] = {
            **index,
            "md5": hashlib.md5(content, usedforsecurity=False).hexdigest(),
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
        }
        self.write()

    def add_python(self) -> None:
        """This Python as a conda package: a link to it, and what makes the prefix its own environment."""
        base = Path(sys.base_prefix) / "bin" / f"python{MINOR}"
        self.add(
            "python",
            VERSION,
            {"pyvenv.cfg": f"home = {base.parent}\nversion_info = {VERSION}\ninclude-system-site-packages = false\n"},
            links={"bin/python": str(base)},
            subdir=SUBDIR,
        )

    def write(self) -> None:
        for subdir, packages in self.packages.items():
            folder = self.folder / subdir
            folder.mkdir(parents=True, exist_ok=True)
            data = {"info": {"subdir": subdir}, "packages": packages, "packages.conda": {}, "repodata_version": 1}
            (folder / "repodata.json").write_text(json.dumps(data))


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    made = Channel(tmp_path / "channel")
    made.add("flour", "1.0", {"share/flour.txt": "wheat\n"})
    made.add("flour", "2.0", {"share/flour.txt": "rye\n"})
    made.add("bread", "3.1", {"share/bread.txt": "crust\n"}, depends=("flour <2",))
    return made


def test_conda_packages_are_solved_and_linked_and_pip_packages_come_on_top(depot, prepare, channel, shelf) -> None:
    channel.add_python()
    shelf.add("leaf", "1.0")
    spec = EnvironmentSpec(conda=("bread", f"python={MINOR}", "pip"), channels=(channel.url,), pip=("leaf",))
    prepared = prepare(depot, spec)
    prefix = depot.root / prepared.key
    assert (prefix / "share" / "bread.txt").read_text() == "crust\n"
    assert (prefix / "share" / "flour.txt").read_text() == "wheat\n"
    argv, environ = prepared.command(("-c", "import leaf, sys; print(leaf.VERSION, sys.prefix)"), {}, prefix)
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0", str(prefix)]
    assert prepared.lock.splitlines() == [
        f"# Python {VERSION}", "conda: bread=3.1=0", "conda: flour=1.0=0", f"conda: python={VERSION}=0", "leaf==1.0",
    ]  # fmt: skip
    assert "linked 3 conda packages" in prepare.lines
    lines = len(prepare.lines)
    assert prepare(depot, spec).key == prepared.key
    assert prepare.lines[lines:] == [
        "pip: not needed, packages are installed from outside the environment",
        f"environment {prepared.key} is there already",
    ]


def test_conda_packages_that_cannot_be_solved_say_rattlers_reason_and_leave_nothing(depot, prepare, channel) -> None:
    channel.add_python()
    with pytest.raises(EnvironmentException) as caught:
        prepare(depot, EnvironmentSpec(conda=("bread", "flour >=2"), channels=(channel.url,)))
    assert "bread" in caught.value.message
    assert "flour" in caught.value.message
    assert list(depot.root.iterdir()) == []


def test_a_channel_without_python_is_named_as_the_reason(depot, prepare, channel) -> None:
    with pytest.raises(EnvironmentException, match="python"):
        prepare(depot, EnvironmentSpec(conda=("bread",), channels=(channel.url,)))
    assert list(depot.root.iterdir()) == []


def test_without_a_channel_that_answers_conda_packages_come_from_pypi_under_the_same_name(
    depot, prepare, shelf
) -> None:
    shelf.add("leaf", "1.2")
    spec = EnvironmentSpec(conda=("leaf=1",), channels=("file:///nowhere/channel",))
    prepared = prepare(depot, spec)
    assert "leaf==1.2" in prepared.lock
    assert any("file:///nowhere/channel" in line and "taken from PyPI" in line for line in prepare.lines)
    assert "conda package leaf=1: taken from PyPI as leaf==1.*" in prepare.lines


def test_a_killed_conda_build_is_no_environment(depot, prepare, channel, offline_environ) -> None:
    channel.add_python()
    spec = EnvironmentSpec(conda=("bread",), channels=(channel.url,))
    prepared = prepare(depot, spec)
    (depot.root / prepared.key / "runyard.json").unlink()  # as it is until the last step
    again = EnvironmentDepot(depot.root, environ=offline_environ)
    assert again.list() == []
    again.clean_leftovers()
    assert list(depot.root.iterdir()) == []
