"""The folder of a run that is being submitted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from runyard.orchestrator.components import Components
from runyard.spec.folder import RunFolder


@contextmanager
def new_folder(components: Components, run_id: str) -> Iterator[RunFolder]:
    """Yield the folder of a new run; remove it if the run is refused, for example because the disk is full."""
    folder = components.folder(run_id)
    existed = folder.root.exists()  # a repeated submission
    try:
        folder.logs.mkdir(parents=True, exist_ok=True)
        yield folder
    except BaseException:
        if not existed and not components.runs.has(run_id):  # not stored by a concurrent repetition
            shutil.rmtree(folder.root, ignore_errors=True)
        raise
