"""The process of an interactive run: the run is Running while this process lives, and ends with it."""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from runyard.errors import RunyardException
from runyard.posix import file_lock
from runyard.spec.folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.sdk.run.run import Run


class InteractiveSession:
    """Holds the run's client lock while this process lives, so that the yard notices when the process is killed.

    A process that exits normally completes its runs; one that exits with an exception fails them.
    """

    def __init__(self, run: Run, outputs: Path | None) -> None:
        self._run, self._pid = run, os.getpid()
        self._outputs = outputs.absolute() if outputs else None
        if self._outputs is not None:
            self._outputs.mkdir(parents=True, exist_ok=True)
        run.folder.mkdir(parents=True, exist_ok=True)  # missing for a child run that is opened on an SSH host
        self._lock = file_lock.acquire(RunFolder(run.folder).client_lock, timeout_s=None)
        _sessions.add(self)
        _ExitWatcher.install()
        atexit.register(self._at_exit)

    def upload_outputs(self) -> None:
        if self._outputs is not None and self._outputs.is_dir():
            self._run.upload_folder("outputs", str(self._outputs))

    def close(self) -> None:
        atexit.unregister(self._at_exit)
        _sessions.discard(self)
        self._release_lock()

    def _release_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _at_exit(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child inherits the hook, not the run
        try:
            if _ExitWatcher.failure is not None:
                self._run.fail(error_details=_ExitWatcher.failure)
            else:
                self._run.complete()
        except (RunyardException, OSError) as error:
            sys.stderr.write(f"run {self._run.id} could not be completed: {error}\n")


_sessions: set[InteractiveSession] = set()


def _release_locks_in_child() -> None:
    # a forked child shares the lock, and would keep the run alive after the process that owns it
    for session in _sessions:
        session._release_lock()
    _sessions.clear()


os.register_at_fork(after_in_child=_release_locks_in_child)


class _ExitWatcher:
    """Records the exception or exit code that ends this process; an atexit hook does not receive it."""

    failure: str | None = None
    _installed = False

    @classmethod
    def install(cls) -> None:
        if cls._installed:
            return
        cls._installed = True
        original_hook, original_exit = sys.excepthook, sys.exit

        def record_exception(kind: type[BaseException], value: BaseException, trace: Any) -> None:
            cls.failure = f"{kind.__name__}: {value}"
            original_hook(kind, value, trace)

        def record_exit(status: Any = None, /) -> NoReturn:
            # SystemExit does not reach the exception hook
            if status is None or status == 0:
                cls.failure = None
            else:
                cls.failure = f"exit code {status}" if isinstance(status, int) else str(status)
            original_exit(status)

        sys.excepthook = record_exception
        sys.exit = record_exit
