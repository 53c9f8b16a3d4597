"""The operations that a yard may request on a host: files by content, agents, working copies. All may be repeated."""

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

from runyard.agent.event_log import EventLog
from runyard.agent.rendezvous.agent_watch import agent_has_died
from runyard.compute.base import Handle
from runyard.compute.local.compute import LocalCompute, agent_status
from runyard.compute.ssh.framing import CHUNK_BYTES
from runyard.data.cache import Cache, Leaf, copy_tree, key_of, record_trees, trees_in_use
from runyard.launch.order import WorkOrder, write_order
from runyard.launch.private_variables import delete_deliveries
from runyard.posix import file_lock
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json

Send = Callable[[dict[str, Any], bytes], None]
_LEAD_TIMEOUT_S = 60.0


@dataclass
class RemoteOperations:
    folder: Path  # Runyard's folder on this host: contents and environments, shared by all yards
    home: Path  # the part of one yard: its runs
    local: LocalCompute
    _incoming: dict[str, Any] = field(default_factory=dict)  # contents being received, by digest
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.cache = Cache(self.folder / "data", in_use=lambda: trees_in_use(self.folder / "yards"))

    def run_folder(self, run_id: str) -> RunFolder:
        if not run_id or "/" in run_id or run_id.startswith("."):
            raise ValueError(f"invalid run id {run_id!r}")
        return RunFolder(self.home / "runs" / run_id)

    def content_path(self, digest: str) -> Path:
        if not digest.isalnum():
            raise ValueError(f"invalid digest {digest!r}")
        return self.folder / "content" / digest[:2] / digest

    def missing_contents(self, digests: list[str]) -> list[str]:
        return [digest for digest in digests if not self.content_path(digest).exists()]

    def missing_data(self, digests: list[str]) -> list[str]:
        return [digest for digest in digests if self.cache.content(digest) is None]

    def store_content(self, digest: str, data: bytes, is_last: bool, is_data: bool = False) -> None:
        """Receive a piece of a file, which appears once it is complete and its digest matches."""
        if digest not in self._incoming:
            path = self.content_path(digest).with_name(f"{digest}.{os.getpid()}.half")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._incoming[digest] = (open(path, "wb"), hashlib.sha256())  # noqa: SIM115 - closed by the last piece
        file, hashing = self._incoming[digest]
        file.write(data)
        hashing.update(data)
        if not is_last:
            return
        del self._incoming[digest]
        file.close()
        path = Path(file.name)
        if hashing.hexdigest() != digest:
            path.unlink()
            raise ValueError(f"content {digest[:12]} was damaged in transfer")
        if is_data:
            self.cache.add(digest, path)
            return
        path.chmod(0o700)
        path.replace(self.content_path(digest))

    def create_data_tree(self, run_id: str, leaves: list[list[Any]], private: str) -> None:
        """Create a folder of data for a run: shared with runs that read the same files, or a private copy."""
        folder, cache = self.run_folder(run_id), self.cache
        files = [Leaf(*leaf) for leaf in leaves]
        for file in files:
            _check_relative(file.path)
        folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock:
            record_trees(folder, [key_of(files)])
        tree = cache.tree(files, _raise_missing)
        if private:
            copy_tree(tree, files, folder.data / private)
        cache.evict()

    def name_content(self, digest: str, name: str) -> str:
        """Copy a content to a file of this name, for programs that read the name; return its path."""
        path = self.folder / "files" / digest[:16] / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            shutil.copyfile(self.content_path(digest), path)
        return str(path)

    def write_working_copy(self, run_id: str, entries: list[dict[str, Any]]) -> None:
        folder = self.run_folder(run_id)
        draft = folder.root / "work.half"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        for entry in entries:
            _check_relative(entry["path"])
            path = draft / entry["path"]
            if entry["kind"] == "dir":
                path.mkdir(parents=True, exist_ok=True)
            elif entry["kind"] == "file":
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.content_path(entry["digest"]), path)
                path.chmod(0o755 if entry["executable"] else 0o644)
        for entry in entries:  # links last: no file must be written through one
            if entry["kind"] == "link":
                path = draft / entry["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(entry["target"])
        shutil.rmtree(folder.work, ignore_errors=True)
        draft.replace(folder.work)

    def start_agent(self, order: dict[str, Any]) -> int:
        """Start the agent of this node of a run; return its pid."""
        work_order = from_json(WorkOrder, order)
        folder = RunFolder(Path(work_order.folder))
        node = folder.node(work_order.node_rank)
        node.root.mkdir(parents=True, exist_ok=True)
        # this host may have been lost, and requested to stop the previous attempt when it was reachable again
        if 0 < _ordered_attempt(node) < work_order.attempt:
            folder.stop.unlink(missing_ok=True)
            file_lock.forget_holder(node.agent_lock)
        write_order(node.order, work_order)
        return self.local.forkserver.fork_agent(node.order, work_order.private)

    def has_agent(self, run_id: str, node_rank: int) -> bool:
        return agent_status(self.run_folder(run_id).node(node_rank)) is not None

    def agent_has_died(self, run_id: str, node_rank: int, attempt: int) -> bool:
        """True if the agent of this attempt is gone and has not ended its part of the run."""
        node = self.run_folder(run_id).node(node_rank)
        has_ended = "node_ended" in EventLog(run_id, node, "", attempt).event_names()
        return agent_has_died(node, attempt) and not has_ended

    def report_lost_node(self, run_id: str, node_rank: int, attempt: int, evidence: str) -> None:
        """Inform the lead agent on this host that the agent of another node has died."""
        node = self.run_folder(run_id).node(node_rank)
        node.root.mkdir(parents=True, exist_ok=True)
        write_text(node.lost, json.dumps({"attempt": attempt, "evidence": evidence}))

    def started_attempt(self, run_id: str, node_rank: int) -> int:
        """The attempt of the run that was started here; 0 if none was."""
        node = self.run_folder(run_id).node(node_rank)
        return _ordered_attempt(node) if node.agent_lock.exists() else 0

    def lead_address(self, run_id: str, attempt: int) -> Optional[str]:
        """Wait until the lead agent listens and return its address; None if it ended before."""
        folder = self.run_folder(run_id)
        deadline = time.monotonic() + _LEAD_TIMEOUT_S
        while time.monotonic() < deadline:
            with suppress(OSError, ValueError):
                lead = json.loads(folder.lead.read_bytes())
                if lead["attempt"] == attempt:
                    return str(lead["place"])
            if agent_status(folder) is None:
                return None
            time.sleep(0.01)
        return None

    def stop(self, run_id: str, reason: str, attempt: Optional[int]) -> None:
        """Stop the run if this is its attempt (None: any): a delayed request must not end a later attempt."""
        folder = self.run_folder(run_id)
        if attempt in (None, _ordered_attempt(folder)):
            self.local.stop(Handle(run_id, str(folder.root)), reason)

    def stop_leftovers(self, run_id: str) -> int:
        """For every node of the run that this host was."""
        root = self.run_folder(run_id).root
        orders = [root / RunFolder.ORDER, *sorted(root.glob(f"nodes/*/{RunFolder.ORDER}"))]
        handles = [Handle(run_id, str(order.parent)) for order in orders if order.exists()]
        return sum(self.local.stop_leftovers(handle) for handle in handles)

    def discard(self, run_id: str, keep: Sequence[str] = ()) -> None:
        """Delete the run's folder, except for the entries named in ``keep``."""
        root = self.run_folder(run_id).root
        delete_deliveries(RunFolder(root))
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

    def download(self, run_id: str, names: list[str], existing: dict[str, list[int]], send: Send) -> list[str]:
        """Send the files below ``work/<name>`` that are not in ``existing``; return warnings about files left out."""
        work = self.run_folder(run_id).work
        warnings: list[str] = []
        for name in names:
            if (work / name).is_symlink():
                warnings.append(f"{name}/ was left out: it is a link that leads out of the run's folder")
                continue
            for path, problem in _walk(work / name, work):
                relative = str(path.relative_to(work))
                if problem:
                    warnings.append(f"{relative} was left out: {problem}")
                    continue
                try:
                    stat = path.stat()
                    if existing.get(relative) != [stat.st_size, stat.st_mtime_ns]:
                        _send_file(path, relative, stat.st_mtime_ns, send)
                except OSError as error:
                    warnings.append(f"{relative} was left out: {error.strerror}")
        return warnings

    def run_command(self, argv: list[str], stdin: str, limit_s: Optional[float] = None) -> dict[str, Any]:
        """Run a command of the host, such as a scheduler's."""
        try:
            result = subprocess.run(
                argv, input=stdin, capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=limit_s
            )
        except FileNotFoundError:
            return {"code": 127, "stdout": "", "stderr": f"{argv[0]}: not found"}
        except subprocess.TimeoutExpired:
            return {"code": 124, "stdout": "", "stderr": f"{argv[0]}: no response within {limit_s:g} s"}
        return {"code": result.returncode, "stdout": result.stdout, "stderr": result.stderr}


def _ordered_attempt(node: RunFolder) -> int:
    """The attempt in the order that was written for a node; 0 if there is none."""
    try:
        return from_json(WorkOrder, json.loads(node.order.read_bytes())).attempt
    except (OSError, ValueError):
        return 0


def _check_relative(path: str) -> None:
    if path.startswith("/") or ".." in Path(path).parts:
        raise ValueError(f"{path!r} leads out of its folder")


def _raise_missing(leaf: Leaf) -> None:
    raise ValueError(f"the content of {leaf.path} is missing")


def _walk(folder: Path, work: Path) -> Iterator[tuple[Path, str]]:
    """Every entry of a folder (or the file itself) with the reason why it cannot be sent; "" for a file that can."""
    top = os.path.realpath(work)
    if folder.is_file():
        yield folder, ""
    for parent, folders, names in os.walk(folder):
        for name in [*names, *(f for f in folders if (Path(parent) / f).is_symlink())]:
            path = Path(parent) / name
            if path.is_symlink():
                target = os.path.realpath(path)
                if not target.startswith(top + os.sep):
                    yield path, "it is a link that leads out of the folder"
                elif Path(target).is_file():
                    yield path, ""
                else:
                    yield path, "it is a link to a folder, or a broken one"
            elif path.is_file():
                yield path, ""
            else:
                yield path, "it is a socket, a pipe or a device"


def _send_file(path: Path, name: str, mtime_ns: int, send: Send) -> None:
    offset = 0
    with open(path, "rb") as file:
        while True:
            data = file.read(CHUNK_BYTES)
            is_last = len(data) < CHUNK_BYTES
            send({"name": name, "at": offset, "is_last": is_last, "mtime_ns": mtime_ns}, data)
            offset += len(data)
            if is_last:
                return
