"""Conda packages from a local channel, solved and linked by rattler."""

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

from runyard.environments.manager import EnvironmentManager
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
            for path, target_path in (links or {}).items():
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname = tarfile.SYMTYPE, target_path
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
        """Package this Python for conda: a link to it, and a pyvenv.cfg."""
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
    channel = Channel(tmp_path / "channel")
    channel.add("flour", "1.0", {"share/flour.txt": "wheat\n"})
    channel.add("flour", "2.0", {"share/flour.txt": "rye\n"})
    channel.add("bread", "3.1", {"share/bread.txt": "crust\n"}, depends=("flour <2",))
    return channel


def test_conda_packages_are_linked_and_pip_packages_are_added(manager, prepare, channel, wheels) -> None:
    channel.add_python()
    wheels.add("leaf", "1.0")
    spec = EnvironmentSpec(conda=("bread", f"python={MINOR}", "pip"), channels=(channel.url,), pip=("leaf",))
    prepared = prepare(manager, spec)
    prefix = manager.root / prepared.key
    assert (prefix / "share" / "bread.txt").read_text() == "crust\n"
    assert (prefix / "share" / "flour.txt").read_text() == "wheat\n"
    argv, environ = prepared.command(("-c", "import leaf, sys; print(leaf.VERSION, sys.prefix)"), {}, prefix)
    process = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["1.0", str(prefix)]
    assert prepared.lock.splitlines() == [
        f"# Python {VERSION}", "conda: bread=3.1=0", "conda: flour=1.0=0", f"conda: python={VERSION}=0", "leaf==1.0",
    ]  # fmt: skip
    assert "linked 3 conda packages" in prepare.lines
    lines = len(prepare.lines)
    assert prepare(manager, spec).key == prepared.key
    assert prepare.lines[lines:] == [
        "pip: not needed, packages are installed from outside the environment",
        f"environment {prepared.key} exists",
    ]


def test_an_unsolvable_request_reports_the_reason_and_leaves_no_files_conda(manager, prepare, channel) -> None:
    channel.add_python()
    with pytest.raises(EnvironmentException) as caught:
        prepare(manager, EnvironmentSpec(conda=("bread", "flour >=2"), channels=(channel.url,)))
    assert "bread" in caught.value.message
    assert "flour" in caught.value.message
    assert list(manager.root.iterdir()) == []


def test_a_channel_without_python_is_reported(manager, prepare, channel) -> None:
    with pytest.raises(EnvironmentException, match="python"):
        prepare(manager, EnvironmentSpec(conda=("bread",), channels=(channel.url,)))
    assert list(manager.root.iterdir()) == []


def test_without_a_reachable_channel_packages_are_installed_from_pypi(manager, prepare, wheels) -> None:
    wheels.add("leaf", "1.2")
    spec = EnvironmentSpec(conda=("leaf=1",), channels=("file:///nowhere/channel",))
    prepared = prepare(manager, spec)
    assert "leaf==1.2" in prepared.lock
    assert any("file:///nowhere/channel" in line and "installed from PyPI" in line for line in prepare.lines)
    assert "conda package leaf=1: installed from PyPI as leaf==1.*" in prepare.lines


def test_an_incomplete_conda_build_is_removed(manager, prepare, channel, offline_environ) -> None:
    channel.add_python()
    spec = EnvironmentSpec(conda=("bread",), channels=(channel.url,))
    prepared = prepare(manager, spec)
    (manager.root / prepared.key / "runyard.json").unlink()  # written in the last step of a build
    again = EnvironmentManager(manager.root, environ=offline_environ)
    assert again.list() == []
    again.clean_leftovers()
    assert list(manager.root.iterdir()) == []
