"""Slurm behind a login node: its commands are run there by SSH, and what runs write there comes back as from any host.

The login node's file system is the one that the nodes share. A connection that is cut harms no job.
"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runyard.compute.base import Capacity, Handle, Observed
from runyard.compute.local.compute import LocalCompute
from runyard.compute.slurm.client import Answer, Caller, Partition, Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.slurm.script import job_name, render
from runyard.compute.ssh.compute import SshCompute, lay_out, working_copy, write_place
from runyard.compute.ssh.framing import Cut
from runyard.compute.ssh.host import Followed, Host
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_NOT_FOUND = 127
_STOP_PATIENCE_S = 24 * 3600.0
# $1 is the folder of a run; what is written appears whole
_KEEP = 'umask 077 && mkdir -p "$1/$(dirname "$2")" && cat > "$1/$2.draft" && mv "$1/$2.draft" "$1/$2"'


def call_on(host: Host) -> Caller:
    """A command on the login node, with the words that its own user would type."""

    def call(words: Sequence[str]) -> Answer:
        code, out, err = host.run(list(words))
        if code == _NOT_FOUND:
            raise ComputeTargetException(
                f"Slurm is not installed on {host.name}: there is no {words[0]}",
                hint=f"can you sbatch there? ssh {host.address.destination} {words[0]} --version",
            )
        return Answer(code, out, err)

    return call


class LoginHost(Host):
    """What its nodes have is what counts, not what the login node has."""

    partition: Callable[[], Partition | None] = staticmethod(lambda: None)

    @property
    def capacity(self) -> Capacity:
        there = self.partition()
        return Capacity(1, 0.0) if there is None else there.capacity


class LoginCompute(SshCompute):
    nodes_are_hosts = False

    def __init__(self, options: SlurmOptions, host: LoginHost, *, kit: Path, local: LocalCompute) -> None:
        super().__init__([host], [Capacity(1, 0.0)], kit=kit, local=local)
        self.host = host
        self.jobs = _JobsThere(options, kit, self)
        host.partition = self.jobs.partition

    def render(self, order: WorkOrder) -> str:
        return self.jobs.render(order)

    def job_text(self, order: WorkOrder) -> str:
        return self.jobs.job_text(order)

    def start(self, order: WorkOrder) -> Handle:
        return self.jobs.start(order)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, Observed]:
        for handle in handles:
            self.followed(handle)  # also of a run that a former yard submitted
        found = self.jobs.status(handles)
        for handle in handles:
            if handle not in found and not self._has_all(handle):
                found[handle] = Observed()
        return found

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        # a login node that is away hears it when it is back
        work, given = self.jobs.stop_quietly, (handle, reason)
        threading.Thread(target=work, args=given, name=f"stop-{handle.run_id}", daemon=True).start()

    def sweep(self, handle: Handle) -> int:
        with suppress(ComputeTargetException):
            return self.jobs.sweep(handle)
        return 1

    def why_gone(self, handle: Handle) -> End | None:
        return self.jobs.why_gone(handle)

    def prepare(self, spec: dict[str, Any], *, numbers: Sequence[int] | None = None, **rest: Any) -> Any:
        """On the login node, for all: they share its file system."""
        return super().prepare(spec, numbers=None if numbers is None else (0,), **rest)

    def capacity(self) -> Capacity:
        return self.jobs.capacity()

    def _has_all(self, handle: Handle) -> bool:
        """Slurm may say that a job has ended before its agent's last word is here: that is fetched first. While the
        login node is away nothing is concluded, until it is given up."""
        if JobRecord(RunFolder(Path(handle.folder))).has_last_word or self._lost(handle):
            return True
        try:
            self._catch_up(self.host, handle, 0, patience_s=0.0)
        except ComputeTargetException as error:
            return not error.facts.get("passing")  # what a courier cannot do now, it will not be able to do later
        return True

    def keep(self, run_id: str, name: str, text: str, patience_s: float = 0.0) -> None:
        """A file in the run's folder on the login node."""
        folder = f"{self.host.facts['home']}/runs/{run_id}"
        argv = ["sh", "-c", _KEEP, "sh", folder, name]
        done = self.host.call("run", argv=argv, input=text, patience_s=patience_s)
        if done["code"] != 0:
            raise ComputeTargetException(f"{folder}/{name} could not be written on {self.host.name}: {done['err']}")


class _JobsThere(SlurmCompute):
    def __init__(self, options: SlurmOptions, kit: Path, login: LoginCompute) -> None:
        super().__init__(options, kit, Slurm(call_on(login.host)))
        self._login = login

    def job_text(self, order: WorkOrder) -> str:
        host = self._login.host
        if not host.is_known:  # a dry run asks nobody
            return super().job_text(order).replace(shlex.quote(str(self._kit)), "'<the kit on the login node>'")
        return self._text(order, self._login.translated(host, order))

    def _text(self, order: WorkOrder, placed: WorkOrder) -> str:
        facts = self._login.host.facts
        kit = f"{facts['folder']}/kit/{self._kit.name}"
        python = str(facts["python"])
        return render(placed, self.options, python=python, kit=kit, there=self._partition[1], name=job_name(order))

    def _hand_in(self, record: JobRecord, order: WorkOrder, name: str) -> str:
        login, host, root = self._login, self._login.host, record.folder.root
        there = login.translated(host, order)
        text = self._text(order, there)
        record.announce(order, text, name)
        write_place(root, {"attempt": order.attempt, "hosts": [host.name], "bases": {}})
        try:
            if order.attempt == 1:  # a later one goes on in the same folder
                lay_out(host, order.run_id, *working_copy(record.folder.work))
            login.keep(order.run_id, RunFolder.ORDER, json.dumps(to_json(there)))
            login.keep(order.run_id, "slurm/job.sh", text)
        except Cut as cut:
            raise ComputeTargetException(f"the connection to {host.name} was lost: {cut}", passing=True) from cut
        job_id = self._slurm.submit(f"{there.folder}/slurm/job.sh")
        host.follow(order.run_id, Followed(root, 0))
        return job_id

    def _ask_to_stop(self, record: JobRecord, reason: str) -> None:
        record.ask_to_stop(reason)
        self._login.keep(record.folder.root.name, RunFolder.STOP, json.dumps({"reason": reason}), _STOP_PATIENCE_S)
