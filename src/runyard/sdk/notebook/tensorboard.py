"""Tensorboard: the real one, over the event files of runs, while they are written."""

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
_LOOK_EVERY_S = 2.0
_STARTS_WITHIN_S = 60.0
_PORTS_TRIED = 20
_URL = re.compile(r"https?://\S+:\d+/\S*")


class Tensorboard:
    """``Tensorboard([run, …]).start()`` copies the event files of the runs as they grow and serves them.

    One run may be given without the list; with an empty list and ``local_root`` it serves that folder as it is. If
    the port is taken, the next free one is used; 0 is any. It needs the extra ``runyard[tensorboard]``.
    """

    LOGS_ARTIFACT_PREFIX = "logs/"

    def __init__(
        self,
        runs: Union[Run, Iterable[Run]],
        local_root: str | None = None,
        port: int = 6006,
        use_display_name: bool = False,
    ) -> None:
        given: Any = runs
        self._runs: list[Run] = [given] if hasattr(given, "get_file_names") else list(given)
        for run in self._runs:
            if not hasattr(run, "get_file_names"):
                raise UserErrorException(f"Tensorboard takes runs, not a {type(run).__name__}")
        if not self._runs and local_root is None:
            raise UserErrorException("Tensorboard needs runs, or a folder", hint="Tensorboard([run]), or local_root=…")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise UserErrorException(f"a port is a number from 0 to 65535, not {port!r}")
        self._root = Path(local_root) if local_root is not None else None
        self._made: Optional[Path] = None
        self._port = port
        self._names = use_display_name
        self._process: Optional[subprocess.Popen[str]] = None
        self._mirror: Optional[_Mirror] = None

    def start(self, start_browser: bool = False) -> Optional[str]:
        """The address, printed too, once it answers; None when it was started before."""
        if self._process is not None:
            return None
        _needs_tensorboard()
        root = self._root
        if root is None:
            root = self._made = Path(tempfile.mkdtemp(prefix="runyard-tensorboard-"))
        root.mkdir(parents=True, exist_ok=True)
        if self._runs:
            self._mirror = _Mirror(self._runs, root, self._names)
            self._mirror.look()
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
        """Ends it, if it was started."""
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
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
            self._made = None

    def _serve(self, root: Path) -> str:
        port = _free_port(self._port)
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(root), "--port", str(port)]
        command += ["--host", "127.0.0.1", "--reload_interval", "2"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        said: list[str] = []
        found: list[str] = []
        ready = threading.Event()
        threading.Thread(target=_listen, args=(self._process, said, found, ready), daemon=True).start()
        ready.wait(_STARTS_WITHIN_S)
        if not found:
            told = "".join(said[-15:]).strip()
            raise RunyardException(f"tensorboard did not start: {told or 'it said nothing'}")
        return found[0]


def _listen(process: subprocess.Popen[str], said: list[str], found: list[str], ready: threading.Event) -> None:
    """Reads to the end: a pipe that nobody reads would stop it."""
    assert process.stderr is not None
    with suppress(ValueError, OSError):
        for line in process.stderr:
            address = _URL.search(line)
            if address and not found:
                found.append(address[0])
                ready.set()
            elif not found:
                said.append(line)
    ready.set()


def _needs_tensorboard() -> None:
    from importlib.util import find_spec

    if find_spec("tensorboard") is None:
        raise UserErrorException(
            "tensorboard is not installed here",
            hint="pip install 'runyard[tensorboard]'; the studio shows the same charts without it",
        )


def _free_port(wanted: int) -> int:
    for port in range(wanted, min(wanted + _PORTS_TRIED, 65536)) if wanted else [0]:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                trial.bind(("127.0.0.1", port))
                return port
    raise UserErrorException(
        f"the ports {wanted} to {wanted + _PORTS_TRIED - 1} are all taken", hint="give another port, or 0 for any"
    )


class _Mirror(threading.Thread):
    """Copies what runs have under ``logs/``, and event files elsewhere, to ``<root>/<run id>/``, until they end."""

    def __init__(self, runs: list[Run], root: Path, names: bool) -> None:
        super().__init__(name="runyard-tensorboard", daemon=True)
        self._live = list(runs)
        self._root, self._names = root, names
        self._sizes: dict[Path, int] = {}
        self._stopping = threading.Event()

    def run(self) -> None:
        while self._live and not self._stopping.wait(_LOOK_EVERY_S):
            self.look()

    def stop(self) -> None:
        self._stopping.set()
        if self.is_alive():
            self.join(30)

    def look(self) -> None:
        for run in list(self._live):
            try:
                ended = run.get_status() in _ENDED  # asked first: what is copied after an end is all
                self._copy(run)
            except (RunyardException, OSError) as error:
                log.warning("the event files of run %s could not be read: %s", run.id, error)
                continue
            if ended:
                self._live.remove(run)

    def _copy(self, run: Run) -> None:
        folder = self._root / (_safe(run.name) if self._names and run.name else run.id)
        for file in run._connection.get(f"/api/runs/{run.id}/files"):
            name: str = file["name"]
            logs = name.startswith(Tensorboard.LOGS_ARTIFACT_PREFIX)
            if self._stopping.is_set() or not (logs or is_event_file(name)):
                continue
            target = folder / (name[len(Tensorboard.LOGS_ARTIFACT_PREFIX) :] if logs else name)
            if self._sizes.get(target) != file["size"] and folder.resolve() in target.resolve().parents:
                self._sizes[target] = self._fetch(run, name, target)

    def _fetch(self, run: Run, name: str, target: Path) -> int:
        """TensorBoard keeps event files open and reads on: they grow in place, and are never replaced."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        have = target.stat().st_size
        with open(target, "ab") as out:
            for piece in _pieces(run, name, have):
                out.write(piece)
        return target.stat().st_size


def _pieces(run: Run, name: str, have: int) -> Iterable[Any]:
    passed = 0
    for piece in run._connection.stream(f"/api/runs/{run.id}/files/{name}"):
        passed += len(piece)
        if passed > have:
            yield piece[len(piece) - min(passed - have, len(piece)) :]


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:100]
