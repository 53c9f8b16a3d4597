"""Real parts on a small scale: wheels, indexes and conda channels that the tests make themselves."""

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

from runyard.environments.manager import EnvironmentDepot, Prepared
from runyard.spec.environment import EnvironmentSpec


class Shelf:
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
    """A package index on this machine that hangs for as long as it is told to."""

    def __init__(self, shelf: Shelf) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.hang_times = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.set()
                if outer.hang_times > 0:
                    outer.hang_times -= 1
                    outer.go_on.wait(120)
                    return
                name = self.path.rstrip("/").rsplit("/", 1)[-1]
                if name.endswith(".whl"):
                    body, kind = (shelf.folder / name).read_bytes(), "application/octet-stream"
                else:
                    links = [f'<a href="/files/{w.name}">{w.name}</a>' for w in shelf.folder.glob(f"{name}-*.whl")]
                    body, kind = f"<html><body>{''.join(links)}</body></html>".encode(), "text/html"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815  the name that http.server looks for

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/simple"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


@pytest.fixture
def index(shelf: Shelf) -> Iterator[Index]:
    server = Index(shelf)
    yield server
    server.close()


@pytest.fixture
def clean_environ(tmp_path: Path) -> dict[str, str]:
    """A person's environment with no pip or uv configuration in it."""
    home = tmp_path / "person"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "RATTLER_CACHE_DIR": str(tmp_path / "rattler-cache"),
    }


@pytest.fixture
def offline_environ(clean_environ: dict[str, str], shelf: Shelf) -> dict[str, str]:
    return {**clean_environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf.folder)}


@pytest.fixture
def depot(tmp_path: Path, offline_environ: dict[str, str]) -> EnvironmentDepot:
    return EnvironmentDepot(tmp_path / "environments", environ=offline_environ)


class Preparer:
    """Asks a depot as a run would, and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []

    def __call__(
        self,
        depot: EnvironmentDepot,
        spec: EnvironmentSpec,
        *,
        has_gpu: bool = False,
        say: Callable[[str], None] | None = None,
        abandoned: threading.Event | None = None,
        run_id: str = "run_1",
    ) -> Prepared:
        run_folder = self.folder / run_id
        run_folder.mkdir(parents=True, exist_ok=True)
        return depot.prepare(
            spec,
            has_gpu=has_gpu,
            say=say or self.lines.append,
            abandoned=abandoned or threading.Event(),
            run_folder=run_folder,
            kit=self.folder,
            run_id=run_id,
        )

    @property
    def log(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture
def prepare(tmp_path: Path) -> Preparer:
    return Preparer(tmp_path / "runs")
