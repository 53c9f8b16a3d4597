"""Mirrors the folders of runs that execute on hosts: which hosts a run is on, and how its files come back."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard import clock
from runyard.compute.base import Compute, Handle
from runyard.compute.ssh.host import FollowedRun, Host
from runyard.compute.ssh.output_download import download_outputs
from runyard.compute.ssh.placeholders import HOST_PATH
from runyard.errors import ComputeTargetException
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder

LOST_AFTER = "RUNYARD_HOST_PATIENCE_S"  # seconds after which the runs of an unreachable host count as lost
_LOST_AFTER_S = 900.0
_RETRY_S = 60.0


class RunMirror:
    """The location of a run is stored in its folder (``mirror.json``), so that the next yard finds it."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.hosts = dict(hosts)  # by unique name
        self._lock = threading.Lock()

    def write_location(self, root: Path, attempt: int, names: Sequence[str], bases: dict[str, int]) -> None:
        location = {"attempt": attempt, "hosts": list(names), "bases": bases}
        write_text(RunFolder(root).mirror, json.dumps(location))

    def attempt(self, handle: Handle) -> int | None:
        """The attempt that was last started."""
        return _location(handle).get("attempt")

    def bases(self, handle: Handle) -> dict[str, int]:
        """The sizes of the run's files before that attempt."""
        return dict(_location(handle).get("bases", {}))

    def hosts_of(self, handle: Handle) -> list[Host]:
        """The hosts on which the run was started, the lead's first."""
        names = _location(handle).get("hosts", [])
        return [self.hosts[name] for name in names if name in self.hosts]

    def follow(self, handle: Handle) -> FollowedRun | None:
        """The lead's part of the run. A run that an earlier yard started is followed from now on."""
        hosts = self.hosts_of(handle)
        if not hosts:
            return None
        if hosts[0].followed(handle.run_id) is None:
            with self._lock:
                for rank, host in enumerate(hosts):
                    if host.followed(handle.run_id) is None:
                        host.follow(handle.run_id, FollowedRun(Path(handle.folder), rank, self.bases(handle)))
        return hosts[0].followed(handle.run_id)

    def unfollow(self, handle: Handle) -> None:
        for host in self.hosts_of(handle):
            host.unfollow(handle.run_id)

    def lost_host(self, handle: Handle) -> Host | None:
        """The lead's host, if it has been unreachable for too long."""
        lead = next(iter(self.hosts_of(handle)), None)
        return lead if lead is not None and lead.unreachable_s > _lost_after_s() else None

    def fetch_all(self, host: Host, handle: Handle, node_rank: int, retry_s: float = _RETRY_S) -> None:
        """Receive all files of an ended run from a host. Each host sends at its own pace: the lead's last event may
        arrive before the last log line of another."""
        if not host.call("send_all", run_id=handle.run_id, retry_s=retry_s):
            host.follow(handle.run_id, FollowedRun(Path(handle.folder), node_rank, self.bases(handle)))
            host.call("send_all", run_id=handle.run_id, retry_s=retry_s)

    def collect(self, handle: Handle, names: Sequence[str]) -> tuple[RunWarning, ...]:
        """As ``Compute.collect``. Where two hosts have a file of the same name, the lead's is kept."""
        warnings: list[RunWarning] = []
        for rank, host in enumerate(self.hosts_of(handle)):
            try:
                require_reachable(host)
                self.fetch_all(host, handle, rank)
                warnings += notes(download_outputs(host, handle, names, keep_existing=rank > 0))
            except ComputeTargetException as error:
                warnings.append(incomplete(f"the files on {host.name} are incomplete: {error.message}"))
        return tuple(warnings)

    def discard(self, handle: Handle) -> None:
        for host in self.hosts_of(handle):
            host.unfollow(handle.run_id)
            with suppress(ComputeTargetException):
                require_reachable(host)
                host.call("discard", run_id=handle.run_id)


class MirroredCompute(Compute):
    """A target whose runs execute on hosts and are mirrored to the yard."""

    copies_code = True
    mirror: RunMirror

    def collect(self, handle: Handle, names: Sequence[str]) -> tuple[RunWarning, ...]:
        return self.mirror.collect(handle, names)

    def discard(self, handle: Handle) -> None:
        self.mirror.discard(handle)

    def inherited_variables(self) -> Mapping[str, str]:
        return {"PATH": HOST_PATH}

    def close(self) -> None:
        for host in self.mirror.hosts.values():
            host.close()


def unique_names(hosts: Sequence[Host]) -> dict[str, Host]:
    """The hosts by name. Two ports of one machine have one name, so they get a number."""
    names = [host.name for host in hosts]
    return {
        host.name if names.count(host.name) == 1 else f"{host.name}-{index}": host for index, host in enumerate(hosts)
    }


def require_reachable(host: Host) -> None:
    """Raise for a host that counts as lost: each step of a run's end would wait for it again."""
    if host.unreachable_s > _lost_after_s():
        raise ComputeTargetException(unreachable_text(host), transient=True)


def unreachable_text(host: Host) -> str:
    return f"{host.name} has been unreachable for {clock.duration_text(host.unreachable_s)}"


def _lost_after_s() -> float:
    return float(os.environ.get(LOST_AFTER, _LOST_AFTER_S))


def _location(handle: Handle) -> dict[str, Any]:
    try:
        location: dict[str, Any] = json.loads(RunFolder(Path(handle.folder)).mirror.read_bytes())
    except (OSError, ValueError):
        return {}
    return location
