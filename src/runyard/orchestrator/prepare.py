"""Prepares the environments of runs and logs the progress in the run's folder."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from runyard import clock
from runyard.compute.base import EnvironmentRequest, ProgressCallback, RemoteEnvironment, RemoteEnvironments
from runyard.compute.scheduling.queue import Placement
from runyard.environments.container import ContainerPrepared
from runyard.environments.manager import Prepared
from runyard.environments.requirements import local_files
from runyard.environments.venv import installed_uv
from runyard.errors import ComputeTargetException, RunyardException
from runyard.lifecycle.state import End, EndReason
from runyard.orchestrator.components import Components
from runyard.posix.atomic_write import write_text
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord
from runyard.tracking.logs import read_log

_LOG_TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class RunEnvironment:
    prepared: Prepared
    mpirun: str = ""  # path of the program; "" if there is none


class RunEnvironments:
    """Prepares the environment of each run once: the result is kept in memory until the run starts."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._prepared: dict[str, Prepared] = {}
        self._remote: dict[str, dict[int, RemoteEnvironment]] = {}  # by run id and node index

    def prepare(self, record: RunRecord, report: ProgressCallback, canceled: threading.Event) -> Prepared:
        """Prepare the environment before the run is placed: on a target with hosts, on all that can be reached."""
        folder = self._components.folder(record.run_id)
        folder.logs.mkdir(parents=True, exist_ok=True)
        started = clock.monotonic()
        with open(folder.environment_log, "a", encoding="utf-8", errors="replace") as log:

            def report_and_log(text: str) -> None:
                log.write(f"[{clock.monotonic() - started:7.2f} s] {text}\n")
                log.flush()
                report(text)

            prepared = self._prepare(record, None, report_and_log, canceled).prepared
        write_text(folder.lock_file, prepared.lock)
        return prepared

    def prepare_existing(self, run_id: str, spec: RunSpec) -> Prepared | None:
        """The environment of a new run, if it exists already: the run is then enqueued in the order of submission,
        not in the order in which threads finish.

        Returns:
            None if the environment must be prepared.

        Raises:
            EnvironmentException: No environment can satisfy the specification.
        """
        lines: list[str] = []
        prepared = check_environment(self._components, spec, lines.append)
        folder = self._components.folder(run_id)
        if prepared is not None and not folder.lock_file.exists():  # it exists if the submission is a repetition
            folder.logs.mkdir(parents=True, exist_ok=True)
            text = "".join(f"[{0.0:7.2f} s] {line}\n" for line in lines)
            folder.environment_log.write_text(text, encoding="utf-8", errors="replace")
            write_text(folder.lock_file, prepared.lock)  # atomic: a part of it, on a full disk, would look complete
        if prepared is not None:
            self._prepared[run_id] = prepared
        return prepared

    def take(self, record: RunRecord, placement: Placement) -> RunEnvironment:
        """The environment for the start of a run, prepared again after a restart of the yard or for a later attempt."""
        if record.life.attempt > 1:
            self.forget(record.run_id)
        try:
            return self._prepare(record, placement, lambda _: None, threading.Event())
        finally:
            self.forget(record.run_id)

    def forget(self, run_id: str) -> None:
        self._prepared.pop(run_id, None)
        self._remote.pop(run_id, None)

    def failure(self, record: RunRecord, error: RunyardException) -> End:
        """The end of a run whose environment failed, with the end of the build log."""
        log = self._components.folder(record.run_id).environment_log
        lines = read_log(log, -_LOG_TAIL_BYTES)[0].decode("utf-8", "replace").splitlines()[-20:]
        return End(EndReason.ENVIRONMENT_FAILED, str(error), last_lines="\n".join(lines))

    def _prepare(
        self, record: RunRecord, placement: Placement | None, report: ProgressCallback, canceled: threading.Event
    ) -> RunEnvironment:
        spec = from_json(RunSpec, record.spec).environment
        compute = self._components.target(record).compute
        if compute.remote_environments is not None:
            nodes = None if placement is None else placement.nodes
            return self._prepare_remote(compute.remote_environments, spec, record.run_id, nodes, report, canceled)
        prepared = self._prepared.get(record.run_id)
        if prepared is None or not _exists(prepared):
            prepared = self._prepared[record.run_id] = self._components.environments.prepare(
                spec,
                has_gpu=bool(compute.capacity().gpus),
                report=report,
                canceled=canceled,
                run_folder=self._components.folder(record.run_id).root,
                node_package=self._components.node_package,
                run_id=record.run_id,
            )
        return RunEnvironment(prepared, _mpirun(prepared))

    def _prepare_remote(
        self,
        environments: RemoteEnvironments,
        spec: EnvironmentSpec,
        run_id: str,
        nodes: tuple[int, ...] | None,
        report: ProgressCallback,
        canceled: threading.Event,
    ) -> RunEnvironment:
        by_node = self._remote.setdefault(run_id, {})
        needed = None if nodes is None else [0] if environments.shared else list(nodes)
        missing = None if needed is None else [node for node in needed if node not in by_node]
        if missing is None or missing:
            request = _remote_request(spec, run_id)
            by_node.update(environments.prepare(request, missing, report=report, canceled=canceled))
        chosen = list(by_node.values()) if needed is None else [by_node[node] for node in needed]
        if needed is not None and any(environment.prepared != chosen[0].prepared for environment in chosen):
            platforms = ", ".join(f"{environment.host}: {environment.platform}" for environment in chosen)
            raise ComputeTargetException(
                f"the hosts of this run cannot share one environment, because they differ ({platforms})",
                hint="attach hosts of one kind as a separate target",
            )
        warnings = dict.fromkeys(text for environment in chosen for text in environment.prepared.get("warnings", ()))
        prepared = from_json(Prepared, chosen[0].prepared)
        return RunEnvironment(replace(prepared, warnings=tuple(warnings)), chosen[0].mpirun)


def check_environment(
    components: Components, spec: RunSpec, report: ProgressCallback = lambda _: None
) -> Prepared | None:
    """The environment if it exists on the yard's machine; None if it must be prepared. Raises if it is impossible."""
    compute = components.targets.get(spec.target).compute
    if compute.remote_environments is not None:
        return None
    has_gpu = bool(compute.capacity().gpus)
    return components.environments.prepare_existing(spec.environment, has_gpu=has_gpu, report=report)


def data_failure(error: RunyardException) -> End:
    """The end of a run whose data could not be fetched."""
    return End(EndReason.LAUNCH_FAILED, f"{error.message}: {error.hint}" if error.hint else error.message)


def _remote_request(spec: EnvironmentSpec, run_id: str) -> EnvironmentRequest:
    return EnvironmentRequest(
        to_json(spec),
        run_id,
        # an interpreter of the submitting machine stands for the host's own, if the host does not have it
        substitute_python=bool(spec.interpreter) and os.access(spec.interpreter or "", os.X_OK),
        uv=None if spec.user_managed else Path(installed_uv()),
        files=() if spec.user_managed else tuple(Path(path) for path in local_files(spec.pip)),
    )


def _exists(prepared: Prepared) -> bool:
    """False if the environment was deleted after it was prepared; a container's Python cannot be checked."""
    return isinstance(prepared, ContainerPrepared) or shutil.which(prepared.python) is not None


def _mpirun(prepared: Prepared) -> str:
    """The environment's own Open MPI first: its packages were built for it."""
    for folder in prepared.path_entries:
        if (Path(folder) / "mpirun").exists():
            return f"{folder}/mpirun"
    return shutil.which("mpirun") or ""
