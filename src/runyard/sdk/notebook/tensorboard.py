"""Starts TensorBoard on the event files of runs, and copies new data while the runs write it."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from runyard.errors import RunyardException, UserErrorException
from runyard.lifecycle.state import TERMINAL
from runyard.wire.event_records import is_event_file

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

log = logging.getLogger("runyard")
_ENDED = frozenset(state.value for state in TERMINAL)
_POLL_S = 2.0
_START_TIMEOUT_S = 60.0
_PORT_ATTEMPTS = 20
_URL = re.compile(r"https?://\S+:\d+/\S*")


class Tensorboard:
    """``Tensorboard([run, …]).start()`` serves the event files of runs, live. Needs ``runyard[tensorboard]``.

    Args:
        runs: A run or several. With an empty list, the existing files in ``local_root`` are served.
        local_root: Folder for the copies of the event files; default: a temporary folder.
        port: Port to listen on; if it is in use, the next free one. 0 means any port.
        use_display_name: Name the copies by the runs' names instead of their ids.
    """

    LOGS_ARTIFACT_PREFIX = "logs/"

    def __init__(
        self,
        runs: Union[Run, Iterable[Run]],
        local_root: str | None = None,
        port: int = 6006,
        use_display_name: bool = False,
    ) -> None:
        items: Any = runs
        self._runs: list[Run] = [items] if hasattr(items, "get_file_names") else list(items)
        for run in self._runs:
            if not hasattr(run, "get_file_names"):
                raise UserErrorException(f"runs must contain runs, got a {type(run).__name__}")
        if not self._runs and local_root is None:
            raise UserErrorException("Tensorboard needs runs or a folder", hint="Tensorboard([run]), or local_root=…")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise UserErrorException(f"port must be between 0 and 65535, got {port!r}")
        self._root = Path(local_root) if local_root is not None else None
        self._temporary_root: Optional[Path] = None
        self._port = port
        self._use_display_name = use_display_name
        self._process: Optional[subprocess.Popen[str]] = None
        self._mirror: Optional[_Mirror] = None

    def start(self, start_browser: bool = False) -> Optional[str]:
        """Start TensorBoard, wait until it responds, and print its URL.

        Args:
            start_browser: Open the URL in a browser.

        Returns:
            The URL; None if TensorBoard was running already.
        """
        if self._process is not None:
            return None
        _require_tensorboard()
        root = self._root
        if root is None:
            root = self._temporary_root = Path(tempfile.mkdtemp(prefix="runyard-tensorboard-"))
        root.mkdir(parents=True, exist_ok=True)
        if self._runs:
            self._mirror = _Mirror(self._runs, root, self._use_display_name)
            self._mirror.sync()
            self._mirror.start()
        atexit.register(self.stop)
        try:
            url = self._serve(root)
        except BaseException:
            self.stop()
            raise
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        if start_browser:
            import webbrowser

            webbrowser.open(url)
        return url

    def stop(self) -> None:
        """Stop TensorBoard if it is running."""
        atexit.unregister(self.stop)
        mirror, self._mirror = self._mirror, None
        if mirror is not None:
            mirror.stop()
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stderr is not None:
                process.stderr.close()
        if self._temporary_root is not None:
            shutil.rmtree(self._temporary_root, ignore_errors=True)
            self._temporary_root = None

    def _serve(self, root: Path) -> str:
        port = _free_port(self._port)
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(root), "--port", str(port)]
        command += ["--host", "127.0.0.1", "--reload_interval", "2"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        output: list[str] = []
        urls: list[str] = []
        ready = threading.Event()
        threading.Thread(target=_read_stderr, args=(self._process, output, urls, ready), daemon=True).start()
        ready.wait(_START_TIMEOUT_S)
        if not urls:
            last_lines = "".join(output[-15:]).strip()
            raise RunyardException(f"tensorboard did not start: {last_lines or 'no output'}")
        return urls[0]


def _read_stderr(process: subprocess.Popen[str], output: list[str], urls: list[str], ready: threading.Event) -> None:
    """Read until the process ends, because a full pipe would block it."""
    assert process.stderr is not None
    with suppress(ValueError, OSError):
        for line in process.stderr:
            url = _URL.search(line)
            if url and not urls:
                urls.append(url[0])
                ready.set()
            elif not urls:
                output.append(line)
    ready.set()


def _require_tensorboard() -> None:
    from importlib.util import find_spec

    if find_spec("tensorboard") is None:
        raise UserErrorException(
            "tensorboard is not installed here",
            hint="pip install 'runyard[tensorboard]'; the studio shows the same charts without it",
        )


def _free_port(first: int) -> int:
    for port in range(first, min(first + _PORT_ATTEMPTS, 65536)) if first else [0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise UserErrorException(
        f"the ports {first} to {first + _PORT_ATTEMPTS - 1} are all in use", hint="pass another port, or 0 for any"
    )


class _Mirror(threading.Thread):
    """Copies the files below ``logs/`` and other event files to ``<root>/<run id>/`` until the runs have ended."""

    def __init__(self, runs: list[Run], root: Path, use_display_name: bool) -> None:
        super().__init__(name="runyard-tensorboard", daemon=True)
        self._live = list(runs)
        self._root, self._use_display_name = root, use_display_name
        self._sizes: dict[Path, int] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        while self._live and not self._stopping.wait(_POLL_S):
            self.sync()

    def stop(self) -> None:
        self._stopping.set()
        if self.is_alive():
            self.join(30)

    def sync(self) -> None:
        for run in list(self._live):
            try:
                ended = run.get_status() in _ENDED  # before copying, so that the copy of an ended run is complete
                self._copy(run)
            except (RunyardException, OSError) as error:
                log.warning("cannot read the event files of run %s: %s", run.id, error)
                continue
            if ended:
                self._live.remove(run)

    def _copy(self, run: Run) -> None:
        folder = self._root / (_safe(run.name) if self._use_display_name and run.name else run.id)
        for file in run._connection.get(f"/api/runs/{run.id}/files"):
            name: str = file["name"]
            is_log = name.startswith(Tensorboard.LOGS_ARTIFACT_PREFIX)
            if self._stopping.is_set() or not (is_log or is_event_file(name)):
                continue
            target = folder / (name[len(Tensorboard.LOGS_ARTIFACT_PREFIX) :] if is_log else name)
            if self._sizes.get(target) != file["size"] and folder.resolve() in target.resolve().parents:
                self._sizes[target] = self._fetch(run, name, target)

    def _fetch(self, run: Run, name: str, target: Path) -> int:
        """Append new data. The file is never replaced, because TensorBoard keeps event files open."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        with open(target, "ab") as file:
            for chunk in _read_from(run, name, target.stat().st_size):
                file.write(chunk)
        return target.stat().st_size


def _read_from(run: Run, name: str, offset: int) -> Iterable[Any]:
    position = 0
    for chunk in run._connection.stream(f"/api/runs/{run.id}/files/{name}"):
        position += len(chunk)
        if position > offset:
            yield chunk[len(chunk) - min(position - offset, len(chunk)) :]


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:100]
