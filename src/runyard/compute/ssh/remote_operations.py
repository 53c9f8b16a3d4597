"""What a yard may ask of a host: code laid out by content, agents started and stopped, files sent back. Each may be
asked twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from runyard.compute.base import Handle
from runyard.compute.local.compute import LocalCompute, agent_status
from runyard.compute.ssh.framing import CHUNK
from runyard.data.cache import Cache, Leaf, copy_tree, key_of, record_trees, trees_in_use
from runyard.launch.order import WorkOrder
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import from_json

Send = Callable[[dict[str, Any], bytes], None]
_LEAD_WAIT_S = 60.0


@dataclass
class Errands:
    folder: Path  # ours on this host: contents and environments, for every yard
    home: Path  # what is one yard's own: its runs
    local: LocalCompute
    _halves: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # of data, for every yard that comes here
        self.cache = Cache(self.folder / "data", in_use=lambda: trees_in_use(self.folder / "yards"))

    def run_folder(self, run_id: str) -> RunFolder:
        if not run_id or "/" in run_id or run_id.startswith("."):
            raise ValueError(f"{run_id!r} cannot be the id of a run")
        return HomeFolder(self.home).run(run_id)

    def lacking(self, digests: list[str]) -> list[str]:
        return [digest for digest in digests if not self.content(digest).exists()]

    def content(self, digest: str) -> Path:
        if not digest.isalnum():
            raise ValueError(f"{digest!r} is not a digest")
        return self.folder / "content" / digest[:2] / digest

    def take_content(self, digest: str, data: bytes, last: bool, of_data: bool = False) -> None:
        """In pieces; it is there when all of it came and is what it should be."""
        half = self._halves.get(digest)
        if half is None:
            path = self.content(digest).with_name(f"{digest}.{os.getpid()}.half")
            path.parent.mkdir(parents=True, exist_ok=True)
            half = self._halves[digest] = (open(path, "wb"), hashlib.sha256())  # noqa: SIM115 - closed by its last piece
        file, seen = half
        file.write(data)
        seen.update(data)
        if last:
            del self._halves[digest]
            file.close()
            if seen.hexdigest() != digest:
                Path(file.name).unlink()
                raise ValueError(f"content {digest[:12]} arrived damaged")
            if of_data:
                self.cache.add(digest, Path(file.name))
                return
            Path(file.name).chmod(0o700)
            Path(file.name).replace(self.content(digest))

    def lacking_data(self, digests: list[str]) -> list[str]:
        cache = self.cache
        return [digest for digest in digests if cache.content(digest) is None]

    def plant(self, run_id: str, leaves: list[list[Any]], private: str) -> None:
        """A tree of data for a run: shared by whoever reads the same, or a copy of the run's own."""
        folder, cache = self.run_folder(run_id), self.cache
        found = [Leaf(*leaf) for leaf in leaves]
        for leaf in found:
            if leaf.path.startswith("/") or ".." in Path(leaf.path).parts:
                raise ValueError(f"{leaf.path!r} leads out of the tree")
        folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock:
            record_trees(folder, [key_of(found)])
        tree = cache.tree(found, _never_arrived)
        if private:
            copy_tree(tree, found, folder.data / private)
        cache.evict()

    def place_file(self, digest: str, name: str) -> str:
        """A content under a name, for those who read things into names; its path."""
        path = self.folder / "files" / digest[:16] / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            shutil.copyfile(self.content(digest), path)
        return str(path)

    def lay_out(self, run_id: str, entries: list[dict[str, Any]]) -> None:
        """The working copy, unless an agent was started in it already."""
        folder = self.run_folder(run_id)
        half = folder.root / "work.half"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True, mode=0o700)
        for entry in entries:
            path = half / entry["path"]
            if ".." in Path(entry["path"]).parts or entry["path"].startswith("/"):
                raise ValueError(f"{entry['path']!r} leads out of the run's folder")
            if entry["kind"] == "dir":
                path.mkdir(parents=True, exist_ok=True)
            elif entry["kind"] == "file":
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.content(entry["digest"]), path)
                path.chmod(0o755 if entry["executable"] else 0o644)
        for entry in entries:  # links come last: nothing can be written through one
            if entry["kind"] == "link":
                path = half / entry["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(entry["target"])
        shutil.rmtree(folder.work, ignore_errors=True)
        half.replace(folder.work)

    def begin(self, order_json: dict[str, Any]) -> int:
        """An agent for this node of a run; its pid."""
        order = from_json(WorkOrder, order_json)
        own = RunFolder(Path(order.folder)).node(order.node_rank)
        own.root.mkdir(parents=True, exist_ok=True)
        write_text(own.order, json.dumps(order_json))
        return self.local.forkserver.fork_agent(own.order)

    def has_agent(self, run_id: str, node_rank: int) -> bool:
        return agent_status(self.run_folder(run_id).node(node_rank)) is not None

    def attempt(self, run_id: str, node_rank: int) -> int:
        """Which attempt of the run was begun here; 0: none."""
        own = self.run_folder(run_id).node(node_rank)
        return _ordered(own) if own.agent_lock.exists() else 0

    def lead(self, run_id: str, attempt: int) -> Optional[str]:
        """Where the lead's agent listens, once it does."""
        folder = self.run_folder(run_id)
        give_up = time.monotonic() + _LEAD_WAIT_S
        while time.monotonic() < give_up:
            with suppress(OSError, ValueError):
                said = json.loads(folder.lead.read_bytes())
                if said["attempt"] == attempt:
                    return str(said["place"])
            if agent_status(folder) is None:
                return None  # it ended before it came so far, and has said why
            time.sleep(0.01)
        return None

    def stop(self, run_id: str, reason: str, attempt: Optional[int]) -> None:
        """None: whichever it is. A word that was long on its way must not end the attempt after the one it is about."""
        folder = self.run_folder(run_id)
        if attempt in (None, _ordered(folder)):
            self.local.stop(Handle(run_id, str(folder.root)), reason)

    def sweep(self, run_id: str) -> int:
        """Of whichever node this host was."""
        root = self.run_folder(run_id).root
        orders = [root / RunFolder.ORDER, *sorted(root.glob(f"nodes/*/{RunFolder.ORDER}"))]
        return sum(self.local.sweep(Handle(run_id, str(order.parent))) for order in orders if order.exists())

    def forget(self, run_id: str, keep: Sequence[str] = ()) -> None:
        root = self.run_folder(run_id).root
        if not keep:
            shutil.rmtree(root, ignore_errors=True)
            return
        for entry in root.iterdir() if root.is_dir() else ():
            if entry.name in keep:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def fetch(self, run_id: str, names: list[str], known: dict[str, list[int]], send: Send) -> list[str]:
        """Sends the files below ``work/<name>`` that the yard does not have; returns warnings: what was left out."""
        work = self.run_folder(run_id).work
        warnings: list[str] = []
        for name in names:
            if (work / name).is_symlink():
                warnings.append(f"{name}/ was left out: it is a link that leads out of the run's folder")
                continue
            for path, problem in _tree(work / name, work):
                relative = str(path.relative_to(work))
                if problem:
                    warnings.append(f"{relative} was left out: {problem}")
                    continue
                try:
                    found = path.stat()
                    if known.get(relative) != [found.st_size, found.st_mtime_ns]:
                        _send_file(path, relative, found, send)
                except OSError as error:
                    warnings.append(f"{relative} was left out: {error.strerror}")
        return warnings

    def run(self, argv: list[str], given: str, timeout_s: Optional[float]) -> dict[str, Any]:
        """A command of the host's own, such as a scheduler's."""
        try:
            done = subprocess.run(
                argv, input=given, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=timeout_s
            )
        except FileNotFoundError:
            return {"code": 127, "out": "", "err": f"{argv[0]}: not found"}
        except subprocess.TimeoutExpired:
            return {"code": 124, "out": "", "err": f"{argv[0]}: no answer in {timeout_s:g} s"}
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def _ordered(own: RunFolder) -> int:
    """Which attempt an agent was asked to begin there; 0: none."""
    try:
        return from_json(WorkOrder, json.loads(own.order.read_bytes())).attempt
    except (OSError, ValueError):
        return 0


def _never_arrived(leaf: Leaf) -> None:
    raise ValueError(f"the content of {leaf.path} is not here")


def _tree(folder: Path, work: Path) -> Iterator[tuple[Path, str]]:
    """The files of a folder, or a file, and those that are none of it, each with the reason."""
    top = os.path.realpath(work)
    if folder.is_file():
        yield folder, ""
    for place, folders, names in os.walk(folder):
        for name in [*names, *(f for f in folders if (Path(place) / f).is_symlink())]:
            path = Path(place) / name
            if path.is_symlink():
                target = os.path.realpath(path)
                if not target.startswith(top + os.sep):
                    yield path, "it is a link that leads out of the folder"
                elif Path(target).is_file():
                    yield path, ""
                else:
                    yield path, "it is a link to a folder, or to nothing"
            elif path.is_file():
                yield path, ""
            else:
                yield path, "it is a socket, a pipe or a device"


def _send_file(path: Path, name: str, found: os.stat_result, send: Send) -> None:
    with open(path, "rb") as file:
        at = 0
        while True:
            data = file.read(CHUNK)
            send({"fetched": name, "at": at, "last": len(data) < CHUNK, "mtime_ns": found.st_mtime_ns}, data)
            at += len(data)
            if len(data) < CHUNK:
                return
