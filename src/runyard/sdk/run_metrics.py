"""Logging to a run, the same from inside its script and from outside: into a journal of this process in its folder."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, BinaryIO

from runyard.context.journal import Journal
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.folder import RunFolder


class MetricLogging:
    def __init__(self, folder: Path, *, rank: int) -> None:
        self._journal = Journal(RunFolder(folder).journal, rank=rank)
        self._log = self._journal.log

    def log(self, name: str, value: Any, description: str = "", step: int | None = None) -> None:
        """One value of a metric. Microseconds: it goes into memory that outlives this process."""
        self._log(name, value, step)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        self._journal.log_list(name, value)

    def log_row(self, name: str, description: str = "", **kwargs: Any) -> None:
        self._journal.log_row(name, **kwargs)

    def log_table(self, name: str, value: dict[str, Any], description: str = "") -> None:
        self._journal.log_table(name, value)

    def log_image(self, name: str, path: str | None = None, plot: Any = None, description: str = "") -> None:
        """A picture: a file by its path, or a matplotlib plot."""
        if (path is None) == (plot is None):
            raise RunyardException(f"log_image({name!r}) takes either path or plot", hint="give exactly one of the two")
        if path is not None:
            if not Path(path).is_file():
                raise UserErrorException(f"there is no image {path!r} to log as {name!r}")
            artifact = Path(path).as_posix().lstrip("./")
            self._keep_image(artifact, Path(path))
        else:
            drawn = io.BytesIO()
            plot.savefig(drawn, format="png")
            drawn.seek(0)
            artifact = f"{name}_{int(time.time())}.png"
            self._keep_image(artifact, drawn)
        self._journal.log_image(name, artifact)

    def _keep_image(self, name: str, data: Path | BinaryIO) -> None:
        raise AssertionError("a run keeps its own files")
