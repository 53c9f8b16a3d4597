"""Runs on SSH hosts: the code goes there, an agent is started there, and what it writes comes back."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.compute.base import Capacity, Compute, Handle, Observed
from runyard.compute.local.compute import LocalCompute
from runyard.compute.ssh import file_sync
from runyard.compute.ssh.data_upload import Gift, give
from runyard.compute.ssh.environment_build import digest_of, prepare_on
from runyard.compute.ssh.framing import Cut
from runyard.compute.ssh.host import Followed, Host
from runyard.compute.ssh.output_download import fetch
from runyard.compute.ssh.placeholders import HOST_FOLDER, HOST_PATH
from runyard.errors import ComputeTargetException, RunyardException
from runyard.launch.order import Node, WorkOrder
from runyard.lifecycle.state import End, EndReason
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import to_json

PATIENCE = "RUNYARD_HOST_PATIENCE_S"  # how long a host may be away before its runs count as lost
_PATIENCE_S = 900.0
_START_PATIENCE_S = 60.0
_STOP_PATIENCE_S = 24 * 3600.0
_SWEEP_PATIENCE_S = 20.0
_CALL_OFF_S = 20.0


class SshCompute(Compute):
    nodes_are_hosts = True  # False: behind the host is a scheduler, which gives the nodes

    def __init__(
        self, hosts: Sequence[Host], capacities: Sequence[Capacity], *, kit: Path, local: LocalCompute
    ) -> None:
        names = [host.name for host in hosts]
        # a launcher is told these names, and they are people's words for the machines; two ports of one name differ
        self.hosts = {
            host.name if names.count(host.name) == 1 else f"{host.name}-{number}": host
            for number, host in enumerate(hosts)
        }
        self._capacities = tuple(capacities)
        self._kit, self._local = kit, local
        self._lock = threading.Lock()

    def render(self, order: WorkOrder) -> str:
        return self._local.render(order, machine=", ".join(node.name for node in order.nodes) or next(iter(self.hosts)))

    def start(self, order: WorkOrder) -> Handle:
        root = Path(order.folder)
        handle = Handle(order.run_id, order.folder)
        hosts = self._hosts_of([node.name for node in order.nodes])
        if _place(root).get("attempt") != order.attempt:
            for host in self._hosts_at(handle):  # one that was lost may be back: it would write into the new attempt's
                host.leave(order.run_id)
            root.mkdir(parents=True, exist_ok=True)
            bases = file_sync.sizes(root)  # what earlier attempts wrote stays; what comes now is written behind it
            write_place(root, {"attempt": order.attempt, "hosts": list(hosts), "bases": bases})
        write_text(RunFolder(root).order, json.dumps(to_json(order)))
        try:
            self._start(order, root, list(hosts.values()))
        except Cut as cut:
            self._call_off(handle)
            raise ComputeTargetException(f"the connection to a host was lost: {cut}", passing=True) from cut
        except (RunyardException, OSError):
            self._call_off(handle)
            raise
        with suppress(OSError, ValueError):  # somebody did not want it any more, while it was on its way
            self._tell_to_stop(handle, str(json.loads((root / RunFolder.STOP).read_bytes())["reason"]))
        return handle

    def status(self, handles: Sequence[Handle]) -> dict[Handle, Observed]:
        """From what the couriers told: a host that is away is not asked, and its runs count as living."""
        found = {}
        for handle in handles:
            lead = self.followed(handle)
            if lead is not None and not lead.is_gone and not self._lost(handle):
                found[handle] = Observed(lead.agent_pid)
        return found

    def why_gone(self, handle: Handle) -> End | None:
        """A host that is away for too long is given up; should it be back, it is told to stop what it has."""
        lost = self._lost(handle)
        if lost is None:
            return None
        self._tell_to_stop(handle, EndReason.NODE_LOST.value)
        since = clock.duration_text(lost.away_s)
        return End(EndReason.NODE_LOST, f"{lost.name} has not been heard of for {since}", node=lost.name)

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        if not Path(handle.folder).is_dir():
            return
        # The reason first: whoever is just starting the run finds it, even though there is nobody to be told yet.
        write_text(Path(handle.folder) / RunFolder.STOP, json.dumps({"reason": reason}))
        self._tell_to_stop(handle, reason)

    def _tell_to_stop(self, handle: Handle, reason: str) -> None:
        """A host that is away hears it when it is back."""
        hosts, attempt = self._hosts_at(handle), _place(Path(handle.folder)).get("attempt")

        def tell() -> None:
            with suppress(ComputeTargetException):
                hosts[0].call("stop", run=handle.run_id, reason=reason, attempt=attempt, patience_s=_STOP_PATIENCE_S)

        if hosts:
            threading.Thread(target=tell, name=f"stop-{handle.run_id}", daemon=True).start()

    def _call_off(self, handle: Handle) -> None:
        """An agent may have begun, and only the answer been lost. It is told before this returns, where it can be: the
        run is forgotten next, and with its folder gone nobody finds the agent."""
        reason, attempt = EndReason.LAUNCH_FAILED.value, _place(Path(handle.folder)).get("attempt")
        try:
            for lead in self._hosts_at(handle)[:1]:
                lead.call("stop", run=handle.run_id, reason=reason, attempt=attempt, timeout_s=_CALL_OFF_S)
        except (RunyardException, OSError):
            self._tell_to_stop(handle, reason)

    def sweep(self, handle: Handle) -> int:
        left = 0
        for host in self._hosts_at(handle):
            try:
                _require_hope(host)
                left += int(host.call("sweep", run=handle.run_id, patience_s=_SWEEP_PATIENCE_S))
            except ComputeTargetException:  # nobody can say what is left there
                left += 1
        return left

    def collect(self, handle: Handle, names: Sequence[str]) -> tuple[RunWarning, ...]:
        """The lead's files win where two hosts have one of the same name."""
        warnings: list[RunWarning] = []
        for number, host in enumerate(self._hosts_at(handle)):
            try:
                _require_hope(host)
                self._catch_up(host, handle, number)
                warnings += notes(fetch(host, handle, names, only_new=number > 0))
            except ComputeTargetException as error:
                warnings.append(incomplete(f"the files on {host.name} are incomplete: {error.message}"))
        return tuple(warnings)

    def _catch_up(self, host: Host, handle: Handle, node_rank: int, patience_s: float = _START_PATIENCE_S) -> None:
        """What each host has is brought in its own time: the lead's last word may be here before a line of another."""
        if not host.call("catch_up", run=handle.run_id, patience_s=patience_s):
            bases = _place(Path(handle.folder)).get("bases", {})
            host.follow(handle.run_id, Followed(Path(handle.folder), node_rank, bases))
            host.call("catch_up", run=handle.run_id, patience_s=patience_s)

    def forget(self, handle: Handle) -> None:
        for host in self._hosts_at(handle):
            host.leave(handle.run_id)
            with suppress(ComputeTargetException):
                _require_hope(host)
                host.call("forget", run=handle.run_id)

    def prepare(
        self,
        spec: dict[str, Any],
        *,
        run_id: str,
        lends_python: bool,
        uv: Path | None,
        files: Sequence[Path],
        say: Callable[[str], None],
        abandoned: threading.Event,
        numbers: Sequence[int] | None = None,
    ) -> list[dict[str, Any]]:
        """The environment, on each of the hosts that are meant or, with none named, on all that can be reached; its
        paths in terms of ``HOST_FOLDER``. ``uv`` builds it where the machine is of our kind; ``files`` go along.
        ``lends_python``: a host without the interpreter that is named uses its own."""
        request = {"spec": spec, "run_id": run_id, "lends_python": lends_python}
        hosts = list(self.hosts.values())
        # one that is known to be away is not waited for: whoever waits for it makes the environment there, later
        chosen = [h for h in hosts if not h.trouble] or hosts if numbers is None else [hosts[n] for n in numbers]
        patience_s = _START_PATIENCE_S if len(chosen) == 1 or numbers is not None else 0.0

        def on(host: Host) -> dict[str, Any] | RunyardException:
            told: Callable[[str], None] = say if len(chosen) == 1 else lambda text: say(f"{host.name}: {text}")
            try:
                return prepare_on(host, request, uv, files, told, abandoned, patience_s)
            except RunyardException as error:
                return error

        with ThreadPoolExecutor(len(chosen), "prepare-there") as pool:
            answers = list(pool.map(on, chosen))
        failures = [answer for answer in answers if isinstance(answer, RunyardException)]
        found = [answer for answer in answers if not isinstance(answer, RunyardException)]
        fatal = [error for error in failures if numbers is not None or not error.facts.get("passing")]
        if fatal or not found:
            raise (fatal or failures)[0]
        for error in failures:
            say(error.message)
        if numbers is not None and any(answer["prepared"] != found[0]["prepared"] for answer in found):
            kinds = ", ".join(f"{host.name}: {_kind_of(host)}" for host in chosen)
            raise ComputeTargetException(
                f"the hosts of this run are not alike, so that they cannot share one environment ({kinds})",
                hint="attach hosts of one kind as a target of their own",
            )
        return found

    def give(
        self, run_id: str, gift: Gift, numbers: Sequence[int], say: Callable[[str], None], abandoned: threading.Event
    ) -> None:
        """Data, on each of the hosts that are meant; a content that one of them has is not sent to it again."""
        hosts = list(self.hosts.values())
        chosen = [hosts[number] for number in numbers] if self.nodes_are_hosts else hosts[:1]
        with ThreadPoolExecutor(len(chosen), "give") as pool:
            list(pool.map(lambda host: give(host, run_id, gift, say, abandoned), chosen))

    def capacity(self) -> Capacity:
        return self._capacities[0]

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()

    def _start(self, order: WorkOrder, root: Path, hosts: list[Host]) -> None:
        begun = hosts[0].call("attempt", run=order.run_id, node_rank=0, patience_s=_START_PATIENCE_S)
        if begun != order.attempt:
            entries, contents = working_copy(RunFolder(root).work)
            with ThreadPoolExecutor(len(hosts), "lay-out") as pool:
                list(pool.map(lambda host: lay_out(host, order.run_id, entries, contents), hosts))
        nodes = tuple(Node(node.name, str(host.facts["address"])) for node, host in zip(order.nodes, hosts))
        order = replace(order, nodes=nodes, secret=order.secret or secrets.token_hex(32))
        self._begin(hosts[0], replace(order, node_rank=0), root)
        if len(hosts) == 1:
            return
        where = hosts[0].call("lead", run=order.run_id, attempt=order.attempt, timeout_s=90.0)
        if where is None:
            return  # the lead's agent ended, and said why
        for rank, host in enumerate(hosts[1:], start=1):
            self._begin(host, replace(order, node_rank=rank, lead=str(where)), root)

    def _begin(self, host: Host, order: WorkOrder, root: Path) -> None:
        pid = host.call("begin", order=to_json(self.translated(host, order)), patience_s=_START_PATIENCE_S)
        bases = _place(root).get("bases", {})
        host.follow(order.run_id, Followed(root, order.node_rank, bases, agent_pid=int(pid)))

    def translated(self, host: Host, order: WorkOrder) -> WorkOrder:
        """The order in the host's own terms."""
        facts = host.facts
        folder, home = str(facts["folder"]), str(facts["home"])
        run_folder = f"{home}/runs/{order.run_id}"
        words = (
            (order.folder, run_folder),
            (str(self._kit), f"{folder}/kit/{self._kit.name}"),
            (HOST_FOLDER, folder),
            (HOST_PATH, str(facts["variables"].get("PATH", os.defpath))),
        )

        def here(text: str) -> str:
            for ours, theirs in words:
                text = text.replace(ours, theirs)
            return text

        variables = {**facts["variables"], **{name: here(value) for name, value in order.variables.items()}}
        if "RUNYARD_HOME" in variables:
            variables.update(
                RUNYARD_HOME=home,
                RUNYARD_YARD_ELSEWHERE="1",
                AZUREML_SERVICE_ENDPOINT=f"unix://{home}/{HomeFolder.SOCKET}",
            )
            variables.pop("RUNYARD_YARD_PYTHON", None)
        return replace(
            order,
            folder=run_folder,
            argv=tuple(here(word) for word in order.argv),
            variables=variables,
            stop_argv=tuple(here(word) for word in order.stop_argv),
            mpirun=here(order.mpirun),
            read_only=tuple(here(path) for path in order.read_only),
            py_spy="",
            doorbell=f"{home}/{HomeFolder.NOTIFY_SOCKET}" if facts["has_socket"] else "",
        )

    def _hosts_of(self, names: Sequence[str]) -> dict[str, Host]:
        chosen = list(names) or [next(iter(self.hosts))]
        unknown = [name for name in chosen if name not in self.hosts]
        if unknown:
            raise ComputeTargetException(f"{', '.join(unknown)} is not among the hosts: {', '.join(self.hosts)}")
        return {name: self.hosts[name] for name in chosen}

    def _hosts_at(self, handle: Handle) -> list[Host]:
        """Where the run was started; the lead's first."""
        names = _place(Path(handle.folder)).get("hosts", [])
        return [self.hosts[name] for name in names if name in self.hosts]

    def _lost(self, handle: Handle) -> Host | None:
        """The lead's host, if nobody waits for it any more."""
        lead = next(iter(self._hosts_at(handle)), None)
        return lead if lead is not None and lead.away_s > patience_s() else None

    def followed(self, handle: Handle) -> Followed | None:
        """The lead's. A run that a former yard started is followed from here on."""
        hosts = self._hosts_at(handle)
        if not hosts:
            return None
        known = hosts[0].followed(handle.run_id)
        if known is None:
            with self._lock:
                bases = _place(Path(handle.folder)).get("bases", {})
                for rank, host in enumerate(hosts):
                    if host.followed(handle.run_id) is None:
                        host.follow(handle.run_id, Followed(Path(handle.folder), rank, bases))
            known = hosts[0].followed(handle.run_id)
        return known


def patience_s() -> float:
    return float(os.environ.get(PATIENCE, _PATIENCE_S))


def _require_hope(host: Host) -> None:
    """A host that was given up is not waited for once more at every step of the way out."""
    if host.away_s > patience_s():
        since = clock.duration_text(host.away_s)
        raise ComputeTargetException(f"{host.name} has not been heard of for {since}", passing=True)


def _kind_of(host: Host) -> str:
    return f"{host.facts['machine']}, Python {host.facts['version']}"


def lay_out(host: Host, run_id: str, entries: list[dict[str, Any]], contents: dict[str, Path]) -> None:
    # of an attempt before this one; what it reads is there already, and stays
    host.call("forget", run=run_id, keep=[RunFolder.DATA, RunFolder.DATA_RECORD], patience_s=_START_PATIENCE_S)
    host.bring(contents)
    host.call("lay_out", run=run_id, entries=entries, timeout_s=600.0)


def working_copy(work: Path) -> tuple[list[dict[str, Any]], dict[str, Path]]:
    """The working copy as a list, and where each content is."""
    entries: list[dict[str, Any]] = []
    contents: dict[str, Path] = {}
    for place, folders, names in os.walk(work):
        below = Path(place).relative_to(work)
        for name in [*names, *(f for f in folders if (Path(place) / f).is_symlink())]:
            path = Path(place) / name
            entry: dict[str, Any] = {"path": str(below / name)}
            if path.is_symlink():
                entries.append({**entry, "kind": "link", "target": str(path.readlink())})
            elif path.is_file():
                digest = digest_of(path)
                contents[digest] = path
                executable = bool(path.stat().st_mode & 0o100)
                entries.append({**entry, "kind": "file", "digest": digest, "executable": executable})
        if not names and not folders:
            entries.append({"path": str(below), "kind": "dir"})
    return entries, contents


def write_place(root: Path, value: dict[str, Any]) -> None:
    write_text(root / RunFolder.MIRROR, json.dumps(value))


def _place(root: Path) -> dict[str, Any]:
    """Where a run was started: kept beside it, for the next yard."""
    try:
        found: dict[str, Any] = json.loads((root / RunFolder.MIRROR).read_bytes())
    except (OSError, ValueError):
        return {}
    return found
