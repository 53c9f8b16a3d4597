"""User-managed environments: an existing interpreter, used unchanged."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from runyard.environments.interpreters import Interpreter, probe, require_supported
from runyard.environments.key import environment_key, platform_tag
from runyard.environments.prepared import PreparationCanceled, Prepared
from runyard.environments.singleflight import Computation, SingleFlight
from runyard.errors import EnvironmentException
from runyard.spec.environment import EnvironmentSpec

_POLL_S = 0.1
_USE_ANOTHER_PYTHON = (
    "pass the full path of a Python, or let Runyard build the environment: user_managed=False, or --pip instead of "
    "--python on the command line"
)


class UserPythons:
    """Probes each interpreter once, until its packages change.

    Starting one takes tens of milliseconds, in which two concurrent submissions could change their order. One that
    hangs is waited for once by all runs.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._probed: dict[str, tuple[Interpreter, tuple[int, ...]]] = {}
        self._single_flight = SingleFlight()

    def prepare(self, spec: EnvironmentSpec, canceled: threading.Event) -> Prepared:
        path = spec.interpreter or sys.executable

        def compute() -> Interpreter:
            interpreter = _probe(spec.interpreter, self._environ)
            self._probed[path] = (interpreter, _modification_times(interpreter))
            return interpreter

        def wait(computation: Computation) -> None:
            while not computation.done.wait(_POLL_S):
                if canceled.is_set():
                    raise PreparationCanceled(f"canceled while listing the packages of {path}")

        return _prepared(spec, self._single_flight.run(path, "", lambda: self._lookup(path), compute, wait))

    def prepare_existing(self, spec: EnvironmentSpec) -> Prepared | None:
        """None if the interpreter must be probed. Raises EnvironmentException if it does not exist."""
        interpreter = self._lookup(spec.interpreter or sys.executable)
        if interpreter is None:
            _resolve(spec.interpreter, self._environ)
            return None
        return _prepared(spec, interpreter)

    def _lookup(self, path: str) -> Interpreter | None:
        interpreter, times = self._probed.get(path, (None, ()))
        return interpreter if interpreter is not None and _modification_times(interpreter) == times else None


def _prepared(spec: EnvironmentSpec, interpreter: Interpreter) -> Prepared:
    packages = "".join(f"{line}\n" for line in interpreter.packages)
    return Prepared(
        key=environment_key(kind="user-managed", python=interpreter.path, platform=platform_tag()),
        python=interpreter.path,
        path_entries=(str(Path(interpreter.path).parent),) if os.sep in interpreter.path else (),
        variables=dict(spec.variables),
        lock=f"# Python {interpreter.version} at {interpreter.path}, user-managed\n{packages}",
    )


def _probe(requested: str | None, environ: Mapping[str, str]) -> Interpreter:
    path = _resolve(requested, environ)
    try:
        interpreter = probe((path,), packages=True)
    except (OSError, ValueError) as error:
        raise EnvironmentException(
            f"{path} is not a working Python interpreter: {error}", hint=_USE_ANOTHER_PYTHON
        ) from error
    require_supported(interpreter.version, path)
    return interpreter


def _resolve(requested: str | None, environ: Mapping[str, str]) -> str:
    name = requested or sys.executable
    try:
        path = shutil.which(name, path=environ.get("PATH")) if os.sep not in name else str(Path(name).expanduser())
        exists = path is not None and Path(path).exists()
    except (OSError, RuntimeError, ValueError) as error:  # name too long, unknown user, or folder not accessible
        raise EnvironmentException(f"no Python interpreter at {name!r}: {error}", hint=_USE_ANOTHER_PYTHON) from error
    if path is None or not exists:
        raise EnvironmentException(f"no Python interpreter at {name!r}", hint=_USE_ANOTHER_PYTHON)
    return path


def _modification_times(interpreter: Interpreter) -> tuple[int, ...]:
    times = []
    for path in (interpreter.path, interpreter.site):
        with contextlib.suppress(OSError):
            times.append(Path(path).stat().st_mtime_ns)
    return tuple(times)
