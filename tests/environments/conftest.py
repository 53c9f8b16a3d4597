"""Small local wheels, package indexes and managers for the tests."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runyard.environments.manager import EnvironmentManager, Prepared
from runyard.spec.environment import EnvironmentSpec


class WheelFolder:
    """A folder of wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def add(self, name: str, version: str, requires: Sequence[str] = ()) -> Path:
        files = {
            f"{name}.py": f"VERSION = {version!r}\n",
            f"{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            + "".join(f"Requires-Dist: {line}\n" for line in requires),
            f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(
            f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
            f"{len(text)}\n"
            for path, text in files.items()
        )
        files[f"{name}-{version}.dist-info/RECORD"] = record
        wheel = self.folder / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        return wheel


class Index:
    """A local package index that hangs for the first ``hang_times`` requests, until ``resume`` is set."""

    def __init__(self, wheels: WheelFolder) -> None:
        self.requested = threading.Event()
        self.resume = threading.Event()
        self.hang_times = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requested.set()
                if outer.hang_times > 0:
                    outer.hang_times -= 1
                    outer.resume.wait(120)
                    return
                name = self.path.rstrip("/").rsplit("/", 1)[-1]
                if name.endswith(".whl"):
                    body, kind = (wheels.folder / name).read_bytes(), "application/octet-stream"
                else:
                    links = [f'<a href="/files/{w.name}">{w.name}</a>' for w in wheels.folder.glob(f"{name}-*.whl")]
                    body, kind = f"<html><body>{''.join(links)}</body></html>".encode(), "text/html"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815  the name is required by http.server

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/simple"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.resume.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def wheels(tmp_path: Path) -> WheelFolder:
    return WheelFolder(tmp_path / "wheel-folder")


@pytest.fixture
def index(wheels: WheelFolder) -> Iterator[Index]:
    server = Index(wheels)
    yield server
    server.close()


@pytest.fixture
def clean_environ(tmp_path: Path) -> dict[str, str]:
    """A user's environment variables without pip or uv configuration."""
    home = tmp_path / "user"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "RATTLER_CACHE_DIR": str(tmp_path / "rattler-cache"),
    }


@pytest.fixture
def offline_environ(clean_environ: dict[str, str], wheels: WheelFolder) -> dict[str, str]:
    return {**clean_environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels.folder)}


@pytest.fixture
def manager(tmp_path: Path, offline_environ: dict[str, str]) -> EnvironmentManager:
    return EnvironmentManager(tmp_path / "environments", environ=offline_environ)


class Preparer:
    """Prepares environments as a run does, and records the progress messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []

    def __call__(
        self,
        manager: EnvironmentManager,
        spec: EnvironmentSpec,
        *,
        has_gpu: bool = False,
        report: Callable[[str], None] | None = None,
        canceled: threading.Event | None = None,
        run_id: str = "run_1",
    ) -> Prepared:
        run_folder = self.folder / run_id
        run_folder.mkdir(parents=True, exist_ok=True)
        return manager.prepare(
            spec,
            has_gpu=has_gpu,
            report=report or self.lines.append,
            canceled=canceled or threading.Event(),
            run_folder=run_folder,
            node_package=self.folder,
            run_id=run_id,
        )

    @property
    def log(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture
def prepare(tmp_path: Path) -> Preparer:
    return Preparer(tmp_path / "runs")
