"""Builds environments on hosts, with Runyard's own code and uv sent there."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from runyard.compute.base import Capacity, EnvironmentRequest, ProgressCallback, RemoteEnvironment, RemoteEnvironments
from runyard.compute.ssh.framing import ConnectionLost
from runyard.compute.ssh.host import Host
from runyard.compute.ssh.placeholders import HOST_FOLDER
from runyard.errors import RunyardException
from runyard.posix import sha256

_RETRY_S = 60.0


class HostEnvironments(RemoteEnvironments):
    def __init__(
        self, hosts: Sequence[Host], *, shared: bool = False, capacity: Callable[[], Capacity] | None = None
    ) -> None:
        """
        Args:
            hosts: One for each node.
            shared: The first host builds for all nodes, which see its file system.
            capacity: The capacity of a node, if the hosts are not the nodes.
        """
        self._hosts, self.shared, self._capacity = tuple(hosts), shared, capacity

    def prepare(
        self,
        request: EnvironmentRequest,
        nodes: Sequence[int] | None,
        *,
        report: ProgressCallback,
        canceled: threading.Event,
    ) -> dict[int, RemoteEnvironment]:
        """Paths in the results are relative to ``HOST_FOLDER``."""
        chosen = self._reachable() if nodes is None else list(nodes)
        retry_s = _RETRY_S if len(chosen) == 1 or nodes is not None else 0.0

        def prepare(index: int) -> RemoteEnvironment | RunyardException:
            host = self._hosts[index]

            def report_host(text: str) -> None:
                report(text if len(chosen) == 1 else f"{host.name}: {text}")

            try:
                host.call("missing_contents", digests=[], retry_s=retry_s)  # connects, or raises the reason
                has_gpu = bool((self._capacity() if self._capacity else host.capacity).gpus)
                return _prepare(host, request, has_gpu, report_host, canceled, retry_s)
            except RunyardException as error:
                return error

        with ThreadPoolExecutor(len(chosen), "prepare-remote") as pool:
            results = dict(zip(chosen, pool.map(prepare, chosen)))
        failures = [result for result in results.values() if isinstance(result, RunyardException)]
        prepared = {i: result for i, result in results.items() if isinstance(result, RemoteEnvironment)}
        fatal = [error for error in failures if nodes is not None or not error.facts.get("transient")]
        if fatal or not prepared:
            raise (fatal or failures)[0]
        for error in failures:
            report(error.message)
        return prepared

    def _reachable(self) -> list[int]:
        """Without hosts that are known to be unreachable: a run that is placed there later prepares them then."""
        return [i for i, host in enumerate(self._hosts) if not host.problem] or list(range(len(self._hosts)))


def _prepare(
    host: Host,
    request: EnvironmentRequest,
    has_gpu: bool,
    report: ProgressCallback,
    canceled: threading.Event,
    retry_s: float,
) -> RemoteEnvironment:
    folder = str(host.facts["folder"])
    spec = json.dumps(request.spec)
    try:
        for path in request.files:
            digest = sha256.of_file(path)
            _upload(host, digest, path, f"sending {path.name} to {host.name}", report)
            host_path = host.call("name_content", digest=digest, name=path.name)
            spec = spec.replace(_json_text(str(path)), _json_text(host_path))
        uv_digest = ""
        if request.uv is not None and host.facts["machine"] == platform.machine():
            uv_digest = _cached_digest(request.uv, request.uv.stat().st_mtime_ns)
            _upload(host, uv_digest, request.uv, f"sending uv, which builds environments, to {host.name}", report)
    except ConnectionLost as error:
        raise host.lost_connection(error) from error
    build_request = {
        "spec": json.loads(spec),
        "run_id": request.run_id,
        "lends_python": request.substitute_python,
        "has_gpu": has_gpu,
        "run_folder": f"{host.facts['home']}/runs/{request.run_id}",
        "kit": f"{folder}/{host.facts['parts'][1]}",
    }

    def on_message(head: dict[str, Any], body: bytes) -> None:
        report(str(head["say"]))

    answer = host.call(
        "prepare_environment",
        request=build_request,
        uv=uv_digest,
        on_message=on_message,
        timeout_s=None,
        retry_s=retry_s,
        canceled=canceled,
    )
    result = json.loads(json.dumps(answer).replace(_json_text(folder), HOST_FOLDER))
    description = f"{host.facts['machine']}, Python {host.facts['version']}"
    return RemoteEnvironment(result["prepared"], result["mpirun"], host.name, description)


def _upload(host: Host, digest: str, path: Path, message: str, report: ProgressCallback) -> None:
    if host.call("missing_contents", digests=[digest]):
        report(message)
        host.upload_contents({digest: path})


def _json_text(text: str) -> str:
    """The text as it appears inside a JSON document, without quotes."""
    return json.dumps(text)[1:-1]


@cache
def _cached_digest(path: Path, mtime_ns: int) -> str:
    return sha256.of_file(path)
