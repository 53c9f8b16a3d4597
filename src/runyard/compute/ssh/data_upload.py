"""Sends data for runs to hosts: only files that a host's cache lacks. Continues after a lost connection."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from runyard import clock
from runyard.compute.base import DataUpload, ProgressCallback, RemoteData
from runyard.compute.ssh.framing import CHUNK_BYTES, ConnectionLost
from runyard.compute.ssh.host import Host
from runyard.compute.ssh.placeholders import HOST_FOLDER
from runyard.errors import DataException
from runyard.spec.folder import RunFolder

_RETRY_S = 120.0
_REPORT_INTERVAL_S = 1.0


class HostData(RemoteData):
    def __init__(self, hosts: Sequence[Host], *, shared: bool = False) -> None:
        """``shared``: all nodes see the file system of the first host."""
        self._hosts, self._shared = tuple(hosts), shared

    def upload(
        self,
        run_id: str,
        folder: str,
        data: DataUpload,
        nodes: Sequence[int],
        *,
        report: ProgressCallback,
        canceled: threading.Event,
    ) -> str:
        hosts = self._hosts[:1] if self._shared else [self._hosts[index] for index in nodes]
        with ThreadPoolExecutor(len(hosts), "upload-data") as pool:
            list(pool.map(lambda host: _upload(host, run_id, data, report, canceled), hosts))
        if data.private:
            return f"{folder}/{RunFolder.DATA}/{data.private}"
        return f"{HOST_FOLDER}/data/trees/{data.key}"


def _upload(host: Host, run_id: str, data: DataUpload, report: ProgressCallback, canceled: threading.Event) -> None:
    sizes = {leaf.digest: leaf.size for leaf in data.leaves}
    deadline = clock.monotonic() + _RETRY_S
    missing: list[str] = []
    while True:
        try:
            sent_count = len(missing)
            missing = host.call("missing_data", digests=sorted(sizes), timeout_s=300.0, retry_s=_RETRY_S)
            if not missing:
                break
            if sent_count == len(missing):  # all of them were sent, and their content did not match
                raise DataException(
                    f"{len(missing):,} files of {data.name} changed while they were sent to {host.name}",
                    hint="submit again when no process writes to them",
                )
            _send(host, data, missing, sizes, report, canceled)
        except ConnectionLost as error:
            missing = []
            if clock.monotonic() > deadline or canceled.wait(0.5):
                raise host.lost_connection(error) from error
    host.call(
        "create_data_tree",
        run_id=run_id,
        leaves=[[leaf.path, leaf.digest, leaf.size] for leaf in data.leaves],
        private=data.private,
        timeout_s=3600.0,
        retry_s=_RETRY_S,
    )


def _send(
    host: Host,
    data: DataUpload,
    digests: list[str],
    sizes: dict[str, int],
    report: ProgressCallback,
    canceled: threading.Event,
) -> None:
    session = host.connect()
    total, sent, reported_at = sum(sizes[digest] for digest in digests), 0, clock.monotonic()
    for digest in digests:
        with open(data.contents[digest], "rb") as file:
            is_last = False
            while not is_last:
                if canceled.is_set():
                    raise DataException(f"the upload of {data.name} was canceled")
                chunk = file.read(CHUNK_BYTES)
                is_last = len(chunk) < CHUNK_BYTES
                session.send("store_content", {"digest": digest, "is_last": is_last, "is_data": True}, chunk)
                sent += len(chunk)
                if clock.monotonic() - reported_at > _REPORT_INTERVAL_S:
                    reported_at = clock.monotonic()
                    report(f"sending data {data.name} to {host.name} {sent / 1e6:,.0f}/{total / 1e6:,.0f} MB")
    # processed in order: the reply means that all files before it were stored
    session.request("missing_data", {"digests": digests[-1:]}, timeout_s=600.0)
    report(f"data {data.name}: {len(digests):,} files sent to {host.name}")
