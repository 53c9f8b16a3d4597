"""The process behind an interactive run: while it lives the run is Running, and its end is told however it comes."""

from __future__ import annotations

import atexit
import fcntl
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from runyard.errors import RunyardException
from runyard.sdk.run import files
from runyard.spec.folder import RunFolder

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run


class Hold:
    """Locks the run's folder for as long as this process lives, so that the yard sees a process that was killed.

    A process that simply ends completes its runs; one that ends by an exception fails them.
    """

    def __init__(self, run: Run, folder: Path, outputs: Path | None) -> None:
        self._run, self._pid = run, os.getpid()
        self._outputs = outputs.absolute() if outputs else None
        if self._outputs is not None:
            self._outputs.mkdir(parents=True, exist_ok=True)
        path = RunFolder(folder).client_lock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.pwrite(self._lock, str(self._pid).encode(), 0)  # from now on, a free lock means that this process is gone
        _holds.add(self)
        _Failures.watch()
        atexit.register(self._at_exit)

    def upload_outputs(self) -> None:
        if self._outputs is not None and self._outputs.is_dir():
            files.upload_folder(self._run._connection, self._run.id, "outputs", str(self._outputs))

    def release(self) -> None:
        atexit.unregister(self._at_exit)
        _holds.discard(self)
        self._close()

    def _close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _at_exit(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child inherits the hook, not the run
        try:
            if _Failures.last is not None:
                self._run.fail(error_details=_Failures.last)
            else:
                self._run.complete()
        except (RunyardException, OSError) as error:
            sys.stderr.write(f"run {self._run.id} could not be completed: {error}\n")


_holds: set[Hold] = set()


def _let_go_in_child() -> None:
    # a forked child shares the lock, and would keep the run alive after the process that it belongs to
    for hold in _holds:
        hold._close()
    _holds.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class _Failures:
    """Remembers the exception that ends this process, since an exit hook is not told of it."""

    last: str | None = None
    _watching = False

    @classmethod
    def watch(cls) -> None:
        if cls._watching:
            return
        cls._watching = True
        shown, leave = sys.excepthook, sys.exit

        def note(kind: type[BaseException], value: BaseException, trace: Any) -> None:
            cls.last = f"{kind.__name__}: {value}"
            shown(kind, value, trace)

        def note_exit(status: Any = None, /) -> NoReturn:
            # a hook for exceptions is not told of this one
            if status is None or status == 0:
                cls.last = None
            else:
                cls.last = f"exit code {status}" if isinstance(status, int) else str(status)
            leave(status)

        sys.excepthook = note
        sys.exit = note_exit
