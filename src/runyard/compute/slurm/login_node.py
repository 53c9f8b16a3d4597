"""Slurm behind a login node: its commands run there by SSH, and the files of runs are mirrored from there.

The login node shares its file system with the nodes. A lost connection does not affect jobs.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from runyard.compute.base import AgentStatus, Capacity, Handle
from runyard.compute.slurm.client import CommandResult, CommandRunner, Slurm
from runyard.compute.slurm.compute import SlurmCompute
from runyard.compute.slurm.job_record import JobRecord
from runyard.compute.slurm.options import SlurmOptions
from runyard.compute.slurm.script import job_name, render
from runyard.compute.ssh.data_upload import HostData
from runyard.compute.ssh.environment_build import HostEnvironments
from runyard.compute.ssh.framing import ConnectionLost
from runyard.compute.ssh.host import FollowedRun, Host
from runyard.compute.ssh.placeholders import translate
from runyard.compute.ssh.run_mirror import MirroredCompute, RunMirror
from runyard.compute.ssh.working_copy import read_working_copy, send_working_copy
from runyard.errors import ComputeTargetException
from runyard.launch.order import WorkOrder, order_text
from runyard.launch.private_variables import delivery_path, variables_text
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder

_COMMAND_NOT_FOUND = 127
_STOP_RETRY_S = 24 * 3600.0
# writes stdin to the file $2 in the run's folder $1, atomically
_WRITE_FILE = 'umask 077 && mkdir -p "$1/$(dirname "$2")" && cat > "$1/$2.draft" && mv "$1/$2.draft" "$1/$2"'


def run_on(host: Host) -> CommandRunner:
    """Runs Slurm's commands on a login node."""

    def run(argv: Sequence[str]) -> CommandResult:
        code, stdout, stderr = host.run_command(list(argv))
        if code == _COMMAND_NOT_FOUND:
            raise ComputeTargetException(
                f"Slurm is not installed on {host.name}: {argv[0]} not found",
                hint=f"does this work? ssh {host.address.destination} {argv[0]} --version",
            )
        return CommandResult(code, stdout, stderr)

    return run


class LoginNodeCompute(MirroredCompute):
    def __init__(self, options: SlurmOptions, host: Host, *, kit: Path) -> None:
        self._host = host
        self.mirror = RunMirror({host.name: host})
        self.scheduler = self.jobs = _LoginNodeJobs(options, host, self.mirror, kit)
        self.remote_environments = HostEnvironments([host], shared=True, capacity=self.jobs.capacity)
        self.remote_data = HostData([host], shared=True)

    def render(self, order: WorkOrder) -> str:
        return self.jobs.render(order)

    def start(self, order: WorkOrder, digests: Mapping[str, str] | None = None) -> Handle:
        return self.jobs.start(order, digests)

    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        for handle in handles:
            self.mirror.follow(handle)  # also a run that an earlier yard submitted
        agents = self.jobs.status(handles)
        for handle in handles:
            if handle not in agents and not self._has_all_events(handle):
                agents[handle] = AgentStatus()
        return agents

    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        # in a separate thread: an unreachable login node receives the request when it is reachable again
        arguments = (handle, reason)
        thread = threading.Thread(
            target=self.jobs.stop_quietly, args=arguments, name=f"stop-{handle.run_id}", daemon=True
        )
        thread.start()

    def stop_leftovers(self, handle: Handle) -> int:
        with suppress(ComputeTargetException):
            return self.jobs.stop_leftovers(handle)
        return 1

    def explain_loss(self, handle: Handle) -> End | None:
        return self.jobs.explain_loss(handle)

    def capacity(self) -> Capacity:
        return self.jobs.capacity()

    def _has_all_events(self, handle: Handle) -> bool:
        """Fetch the agent's last event, which may arrive after Slurm reports the end of the job. While the login node
        is unreachable the run counts as alive, until the host is lost."""
        if JobRecord(RunFolder(Path(handle.folder))).has_ended or self.mirror.lost_host(handle):
            return True
        try:
            self.mirror.fetch_all(self._host, handle, 0, retry_s=0.0)
        except ComputeTargetException as error:
            return not error.facts.get("transient")  # an operation that fails for good will not succeed later
        return True


class _LoginNodeJobs(SlurmCompute):
    """Jobs whose scripts, orders and stop requests are files on the login node."""

    def __init__(self, options: SlurmOptions, host: Host, mirror: RunMirror, kit: Path) -> None:
        super().__init__(options, kit, Slurm(run_on(host)))
        self._host, self._mirror = host, mirror

    def job_script(self, order: WorkOrder) -> str:
        if not self._host.has_facts:  # a dry run does not connect
            return super().job_script(order).replace(shlex.quote(str(self._kit)), "'<the kit on the login node>'")
        return self._host_script(order, translate(order, self._host.facts, self._kit))

    def _host_script(self, order: WorkOrder, host_order: WorkOrder) -> str:
        facts, partition = self._host.facts, self._partition[1]
        kit = f"{facts['folder']}/kit/{self._kit.name}"
        name = job_name(order)
        return render(host_order, self.options, python=str(facts["python"]), kit=kit, partition=partition, name=name)

    def _submit(self, record: JobRecord, order: WorkOrder, name: str, digests: Mapping[str, str]) -> str:
        host, root = self._host, record.folder.root
        host_order = translate(order, host.facts, self._kit)
        script = self._host_script(order, host_order)
        record.write_before_submission(order, script, name)
        self._mirror.write_location(root, order.attempt, [host.name], {})
        try:
            if order.attempt == 1:  # later attempts use the same folder
                send_working_copy(host, order.run_id, read_working_copy(record.folder.work, digests))
            self._write_file(order.run_id, RunFolder.ORDER, order_text(host_order))
            self._write_deliveries(host_order)
            self._write_file(order.run_id, "slurm/job.sh", script)
        except ConnectionLost as error:
            raise host.lost_connection(error) from error
        job_id = self._slurm.submit(f"{host_order.folder}/slurm/job.sh")
        host.follow(order.run_id, FollowedRun(root, 0))
        return job_id

    def _write_stop_request(self, record: JobRecord, reason: str) -> None:
        record.request_stop(reason)
        content = json.dumps({"reason": reason})
        self._write_file(record.folder.root.name, RunFolder.STOP, content, retry_s=_STOP_RETRY_S)

    def _write_deliveries(self, host_order: WorkOrder) -> None:
        folder, text = RunFolder(Path(host_order.folder)), variables_text(host_order.private)
        for node_rank in range(host_order.resources.nodes):
            path = delivery_path(folder, host_order.attempt, node_rank)
            self._write_file(host_order.run_id, os.path.relpath(path, folder.root), text)

    def _write_file(self, run_id: str, name: str, content: str, retry_s: float = 0.0) -> None:
        """Write a file in the run's folder on the login node."""
        folder = f"{self._host.facts['home']}/runs/{run_id}"
        argv = ["sh", "-c", _WRITE_FILE, "sh", folder, name]
        result = self._host.call("run_command", argv=argv, stdin=content, retry_s=retry_s)
        if result["code"] != 0:
            raise ComputeTargetException(f"cannot write {folder}/{name} on {self._host.name}: {result['stderr']}")
