"""Blob stores for tests: rclone as an S3 server, Azurite for Azure, and a proxy whose connections can be cut."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import eventually

PROJECT = Path(__file__).parents[1]
AZURE_ACCOUNT = "devstoreaccount1"
# the well-known key of all Azurite emulators
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
S3_KEY, S3_SECRET = "the-key", "the-secret-of-the-key"


@dataclass(frozen=True)
class S3Server:
    port: int
    root: Path

    def bucket(self, name: str) -> dict[str, str]:
        """Create a bucket and return its configuration for a datastore."""
        import boto3

        endpoint = f"http://127.0.0.1:{self.port}"
        keys = {"aws_access_key_id": S3_KEY, "aws_secret_access_key": S3_SECRET, "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=endpoint, **keys)
        client.create_bucket(Bucket=name)
        client.close()  # otherwise another test reports its open connection
        return {
            "bucket": name,
            "endpoint": endpoint,
            "access_key_id": S3_KEY,
            "secret_access_key": S3_SECRET,
        }


@dataclass(frozen=True)
class AzureServer:
    port: int

    def container(self, name: str) -> dict[str, str]:
        from azure.storage.blob import ContainerClient

        endpoint = f"http://127.0.0.1:{self.port}/{AZURE_ACCOUNT}"
        with ContainerClient(endpoint, name, credential=AZURE_KEY) as client:
            client.create_container()
        return {
            "container_name": name,
            "account_name": AZURE_ACCOUNT,
            "endpoint": endpoint,
            "account_key": AZURE_KEY,
        }


@contextmanager
def s3_server() -> Iterator[S3Server]:
    root = Path(tempfile.mkdtemp(prefix="ry-s3-"))
    program = Path(sys.executable).with_name("rclone")
    port = free_port()
    arguments = ["serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{S3_KEY},{S3_SECRET}"]
    arguments += ["--dir-cache-time", "100h", str(root)]
    with _run_server([str(program), *arguments], port, root):
        yield S3Server(port, root)


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    root = Path(tempfile.mkdtemp(prefix="ry-az-"))
    program, port = _azurite(), free_port()
    arguments = ["--blobPort", str(port), "--location", str(root), "--silent", "--skipApiVersionCheck"]
    with _run_server(["node", program, *arguments, "--disableTelemetry"], port, root):
        yield AzureServer(port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _azurite() -> str:
    """Install Azurite once per machine; concurrent test processes wait."""
    cache = Path.home() / ".cache" / "runyard"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "azurite.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.run([PROJECT / "scripts" / "install-azurite"], capture_output=True, text=True)
    if process.returncode != 0:
        reason = (process.stderr.strip().splitlines() or ["scripts/install-azurite failed"])[-1]
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return process.stdout.strip().splitlines()[-1]


@contextmanager
def _run_server(argv: list[str], port: int, root: Path) -> Iterator[None]:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=root)
    try:
        eventually(lambda: process.poll() is not None or _is_listening(port), f"{argv[0]} listens", 60)
        assert process.poll() is None, f"{argv[0]} ended with {process.returncode}"
        yield
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(root, ignore_errors=True)


def _is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@dataclass
class CuttableProxy:
    """A TCP proxy to a local port whose connections can be cut."""

    target_port: int
    port: int = 0
    passed: int = 0  # bytes in both directions
    cut_after: int | None = None  # cut when this number of bytes has passed
    _open: list[socket.socket] = field(default_factory=list)
    _is_cut: bool = False
    _closed: bool = False

    def __enter__(self) -> CuttableProxy:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        self._thread.join(5)

    def cut(self) -> None:
        self._is_cut = True
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def restore(self) -> None:
        self._is_cut, self.cut_after = False, None

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._is_cut:
                client.close()
                continue
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.target_port)) as server:
            self._open += [client, server]
            while True:
                ready, _, _ = select.select([client, server], [], [], 60)
                for connection in ready:
                    data = connection.recv(1 << 16)
                    if not data:
                        return
                    self.passed += len(data)
                    if self.cut_after is not None and self.passed > self.cut_after:
                        self.cut()
                        return
                    (server if connection is client else client).sendall(data)
