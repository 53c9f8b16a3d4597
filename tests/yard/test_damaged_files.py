"""Damaged outputs are never delivered: an error for small files and ranges, a cut-off transfer for large ones."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_support import CommandLine
from runyard import Experiment, LocalWebservice, Model, Workspace
from runyard.errors import FileCorrupted, RunyardException, WebserviceException
from service_support import TIMES, register_factor, scoring_config

pytestmark = pytest.mark.real

LARGE = 40 << 20


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(home, tmp_path)
    yield command_line
    command_line.close()


def store(tmp_path: Path, size: int):
    """A completed run with one file of this size."""
    source = tmp_path / "model.bin"
    source.write_bytes(os.urandom(size))
    run = Experiment(Workspace(), "digits").start_logging(snapshot_directory=None)
    run.upload_file("outputs/model.bin", str(source))
    run.complete()
    return run


def damage(home: Path) -> None:
    (path,) = (home / "artifacts").glob("*/*")
    path.chmod(0o600)
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 0xFF]))


@pytest.mark.parametrize("size", [1000, LARGE], ids=["small", "large"])
def test_a_damaged_output_is_not_downloaded(home: Path, cli: CommandLine, tmp_path: Path, size: int) -> None:
    run = store(tmp_path, size)
    target = tmp_path / "download.bin"
    run.download_file("outputs/model.bin", str(target))
    assert target.stat().st_size == size
    target.unlink()
    damage(home)
    with pytest.raises(FileCorrupted, match=r"model\.bin"):
        run.download_file("outputs/model.bin", str(target))
    assert not target.exists()
    result = cli("download", run.id, "-o", str(tmp_path / "all"))
    assert result.code == 1
    assert "damaged" in result.err
    assert not (tmp_path / "all" / "outputs" / "model.bin").exists()
    if size < LARGE:
        check = cli("fsck")
        assert (check.code, f"run {run.id}: outputs/model.bin" in check.text) == (1, True)
        assert "checking stored files" in check.err
        findings = json.loads(cli("fsck", "--json").out)["findings"]
        assert [finding["level"] for finding in findings] == ["damage"]


def request(home: Path, target: str, *headers: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(home / "yard.sock"))
        lines = [f"GET {target} HTTP/1.1", "Host: yard", "Connection: close", *headers, "", ""]
        stream.sendall("\r\n".join(lines).encode())
        data = b""
        while piece := stream.recv(1 << 20):
            data += piece
    return data


def test_a_large_damaged_file_is_cut_off_and_then_refused(home: Path, tmp_path: Path) -> None:
    run = store(tmp_path, LARGE)
    damage(home)
    target = f"/api/runs/{run.id}/files/outputs/model.bin"
    first = request(home, target)
    assert first.startswith(b"HTTP/1.1 200")
    assert len(first.partition(b"\r\n\r\n")[2]) < LARGE
    assert request(home, target).startswith(b"HTTP/1.1 500")


def test_a_range_of_a_damaged_file_and_its_archive_are_refused(home: Path, tmp_path: Path) -> None:
    run = store(tmp_path, LARGE)
    damage(home)
    target = f"/api/runs/{run.id}/files/outputs/model.bin"
    assert request(home, target, "Range: bytes=0-9").startswith(b"HTTP/1.1 500")
    assert request(home, f"/api/runs/{run.id}/files.zip").startswith(b"HTTP/1.1 500")


def test_a_damaged_model_is_not_downloaded(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "net.bin"
    source.write_bytes(b"net" * 1000)
    workspace = Workspace()
    model = Model.register(workspace, model_path=str(source), model_name="net")
    damage(home)
    with pytest.raises(FileCorrupted):
        model.download(target_dir=str(tmp_path / "models"))
    with pytest.raises(RunyardException):
        workspace.connection.read("/api/models/net/versions/1/files/net.bin")


def test_a_damaged_model_is_not_deployed(home: Path, tmp_path: Path) -> None:
    model = register_factor(Workspace(), tmp_path / "model", 3, "factor")
    damage(home)
    service = Model.deploy(
        Workspace(), "scale", [model], scoring_config(tmp_path / "code", TIMES), LocalWebservice.deploy_configuration()
    )
    with pytest.raises(WebserviceException, match=r"factor\.json"):
        service.wait_for_deployment()
    service.delete()


def test_a_missing_content_is_an_error_that_names_the_file(home: Path, tmp_path: Path) -> None:
    run = store(tmp_path, 1000)
    (path,) = (home / "artifacts").glob("*/*")
    path.unlink()
    with pytest.raises(FileCorrupted, match=r"model\.bin"):
        run.download_file("outputs/model.bin", str(tmp_path / "x.bin"))
