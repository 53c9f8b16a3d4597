"""The folder of a run that is being submitted."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runyard.orchestrator.components import Components
from runyard.spec.folder import RunFolder

_guard = threading.Lock()
_locks: dict[Path, threading.Lock] = {}
_users: Counter[Path] = Counter()  # threads that hold or wait for each lock


@contextmanager
def new_folder(components: Components, run_id: str) -> Iterator[RunFolder]:
    """Yield the folder of a new run; remove it if the run is refused, for example because the disk is full.

    Submissions of the same id wait for each other: the files of one must not be mixed with the record of another. The
    yard is the only process that creates folders of runs, and runs are submitted only through this function.
    """
    folder = components.folder(run_id)
    with _exclusive(folder.root):
        existed = folder.root.exists()  # a repeated submission
        try:
            folder.logs.mkdir(parents=True, exist_ok=True)
            yield folder
        except BaseException:
            if not existed and not components.runs.has(run_id):
                shutil.rmtree(folder.root, ignore_errors=True)
            raise


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with _guard:
        lock = _locks.setdefault(path, threading.Lock())
        _users[path] += 1
    try:
        with lock:
            yield
    finally:
        with _guard:
            _users[path] -= 1
            if not _users[path]:
                del _locks[path], _users[path]
