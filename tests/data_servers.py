"""Real blob stores for tests: rclone as an S3 server, Azurite for Azure, and a wire between that can be cut."""

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
# Azurite's well-known key, the same for everybody: it opens nothing but an emulator
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
S3_KEY, S3_SECRET = "the-key", "the-secret-of-the-key"


@dataclass(frozen=True)
class S3Server:
    port: int
    root: Path

    def bucket(self, name: str) -> dict[str, str]:
        """A new bucket, as it is registered."""
        import boto3

        endpoint = f"http://127.0.0.1:{self.port}"
        keys = {"aws_access_key_id": S3_KEY, "aws_secret_access_key": S3_SECRET, "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=endpoint, **keys)
        client.create_bucket(Bucket=name)
        client.close()  # else its connection is found open in some other test
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
    words = ["serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{S3_KEY},{S3_SECRET}"]
    words += ["--dir-cache-time", "100h", str(root)]
    with _serving([str(program), *words], port, root):
        yield S3Server(port, root)


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    root = Path(tempfile.mkdtemp(prefix="ry-az-"))
    program, port = _azurite(), free_port()
    words = ["--blobPort", str(port), "--location", str(root), "--silent", "--skipApiVersionCheck"]
    with _serving(["node", program, *words, "--disableTelemetry"], port, root):
        yield AzureServer(port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _azurite() -> str:
    """Installed once per machine, by whichever process of the tests comes first."""
    cache = Path.home() / ".cache" / "runyard"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "azurite.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([PROJECT / "scripts" / "install-azurite"], capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["scripts/install-azurite failed"])[-1]
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return done.stdout.strip().splitlines()[-1]


@contextmanager
def _serving(argv: list[str], port: int, root: Path) -> Iterator[None]:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=root)
    try:
        eventually(lambda: process.poll() is not None or _answers(port), f"{argv[0]} listens", 60)
        assert process.poll() is None, f"{argv[0]} ended with {process.returncode}"
        yield
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(root, ignore_errors=True)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@dataclass
class Wire:
    """A port that leads to another one, until it is cut; what is on its way then is lost."""

    to: int
    port: int = 0
    passed: int = 0  # bytes, from the server to its clients and back
    cut_after: int | None = None  # bytes, once
    _open: list[socket.socket] = field(default_factory=list)
    _is_cut: bool = False
    _closed: bool = False

    def __enter__(self) -> Wire:
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
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut, self.cut_after = False, None

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self.to)) as far:
            self._open += [near, far]
            while True:
                ready, _, _ = select.select([near, far], [], [], 60)
                for one in ready:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    self.passed += len(data)
                    if self.cut_after is not None and self.passed > self.cut_after:
                        self.cut()
                        return
                    (far if one is near else near).sendall(data)
