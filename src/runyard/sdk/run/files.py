"""The files of a run, from people's side: names, download, upload, the code as a zip."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Union

from runyard.client.connection import Connection
from runyard.errors import UserErrorException

log = logging.getLogger("runyard")


def read(connection: Connection, run_id: str, name: str) -> bytes:
    return connection.read(f"/api/runs/{run_id}/files/{name}")


def download(connection: Connection, run_id: str, name: str, output_file_path: str | None) -> None:
    """Into the current folder under its own name, into a folder that is there, or to a path."""
    target = Path(output_file_path) if output_file_path else Path(Path(name).name)
    if target.is_dir() or str(output_file_path or "").endswith("/"):
        target = target / Path(name).name
    if not target.parent.is_dir():
        raise UserErrorException(f"the folder {str(target.parent)!r} for {name!r} does not exist", hint="make it first")
    _fetch(connection, run_id, name, target)


def download_many(
    connection: Connection,
    run_id: str,
    prefix: str | None,
    output_directory: str | None,
    output_paths: list[str] | None,
    append_prefix: bool,
) -> None:
    names = [file["name"] for file in connection.get(f"/api/runs/{run_id}/files")]
    wanted = [name for name in names if not prefix or name == prefix or name.startswith(prefix.rstrip("/") + "/")]
    if prefix and not wanted:
        wanted = [name for name in names if name.startswith(prefix)]
    if prefix and not wanted:
        known = ", ".join(sorted({name.split("/")[0] for name in names})) or "none"
        raise UserErrorException(f"run {run_id} has no files under {prefix!r}", hint=f"it has files under: {known}")
    if output_paths is not None and len(output_paths) != len(wanted):
        raise UserErrorException(f"{len(output_paths)} output_paths were given for {len(wanted)} files")
    base = Path(output_directory or ".")
    for place, name in enumerate(wanted):
        if output_paths is not None:
            target = base / output_paths[place]
        elif prefix and not append_prefix:
            target = base / (name[len(prefix) :].lstrip("/") or Path(name).name)
        else:
            target = base / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(connection, run_id, name, target)


def upload(connection: Connection, run_id: str, name: str, source: Union[str, Path, BinaryIO]) -> Uploaded:
    if not name or not isinstance(name, str):
        raise UserErrorException(f"an uploaded file needs a name, not {name!r}")
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.is_file():
            raise UserErrorException(f"there is no file {str(path)!r} to upload as {name!r}")
        with open(path, "rb") as stream:
            kept = connection.upload(f"/api/runs/{run_id}/files/{name}", stream)
    else:
        kept = connection.upload(f"/api/runs/{run_id}/files/{name}", source)
    return Uploaded(run_id, kept["name"], kept["size"])


def upload_folder(connection: Connection, run_id: str, name: str, folder: str) -> None:
    root = Path(folder)
    if not root.is_dir():
        raise UserErrorException(f"there is no folder {folder!r} to upload as {name!r}")
    top = root.resolve()
    for path in sorted(root.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(top):
            log.warning("%s was left out: it is a link that leads out of the folder", path)
        elif path.is_file():
            upload(connection, run_id, f"{name}/{path.relative_to(root).as_posix()}".lstrip("/"), path)


def restore_snapshot(connection: Connection, snapshot_id: str, folder: str | None) -> str:
    place = Path(folder or "snapshots")
    place.mkdir(parents=True, exist_ok=True)
    target = (place / f"{snapshot_id}.zip").absolute()
    connection.download(f"/api/snapshots/{snapshot_id}/zip", target)
    return str(target)


@dataclass(frozen=True)
class Uploaded:
    """What `upload_file` answers with, in the shape that scripts for the SDK v1 print."""

    run_id: str
    name: str
    size: int

    def serialize(self) -> dict[str, Any]:
        artifact = {"path": self.name, "origin": "ExperimentRun", "container": f"dcid.{self.run_id}", "size": self.size}
        return {"artifacts": {self.name: artifact}, "artifactContentInformation": {self.name: artifact}, "errors": {}}


def _fetch(connection: Connection, run_id: str, name: str, target: Path) -> None:
    """To a name beside it first: a download that breaks off leaves no half file under the right name."""
    part = target.with_name(f".{os.urandom(8).hex()}.part")  # its own name with more would be too long for some
    try:
        connection.download(f"/api/runs/{run_id}/files/{name}", part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
