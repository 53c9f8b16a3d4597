"""Logging to a run, the same from inside its script and from outside: into a journal of this process in its folder."""

from __future__ import annotations

import io
import time

from runyard.context.journal import Journal
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.folder import RunFolder

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from typing import Any, BinaryIO, Optional, Union

    Moment = Union[float, datetime, None]
    Document = Union[str, dict[str, Any]]


class MetricLogging:
    def __init__(self, folder: str, *, rank: int) -> None:
        self._journal = Journal(f"{folder}/{RunFolder.JOURNAL}", rank=rank)
        self._log = self._journal.log

    def _keep_no_journal(self) -> None:
        """The run's folder is on the yard's machine, and this is another: what was written here would stay here."""
        self._journal = _NoJournal()  # type: ignore[assignment]  # has as much of one as is called
        self._log = self._journal.log

    def log(
        self, name: str, value: Any, description: str = "", step: int | None = None, timestamp: Moment = None
    ) -> None:
        """One value of a metric. Microseconds: it goes into memory that outlives this process.

        ``timestamp`` is for values of another moment: seconds since 1970, or a datetime.
        """
        if timestamp is None:
            self._log(name, value, step)
        else:
            self._journal.log_at(name, value, timestamp, step)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        self._journal.log_list(name, value)

    def log_row(self, name: str, description: Optional[str] = None, **kwargs: Any) -> None:
        self._journal.log_row(name, **kwargs)

    def log_table(
        self,
        name: str,
        value: dict[str, Any],
        description: str = "",
        step: int | None = None,
        timestamp: Moment = None,
    ) -> None:
        self._journal.log_table(name, value, step, timestamp)

    def log_image(
        self,
        name: str,
        path: str | None = None,
        plot: Any = None,
        description: str = "",
        step: int | None = None,
        timestamp: Moment = None,
    ) -> None:
        """A picture: a file by its path, or a matplotlib figure (or ``plt`` itself, for the current one)."""
        source = image_source(name, path, plot)
        if isinstance(source, io.BytesIO):
            # the second may be the same for several pictures of one name: a step tells them apart
            artifact = f"{name}_{int(time.time())}{'' if step is None else f'_{step}'}.png"
        else:
            artifact = "/".join(part for part in source.parts if part not in ("/", "..", "."))
        self._keep_image(artifact, source)
        self._journal.log_image(name, artifact, step, timestamp)

    def log_confusion_matrix(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Moment = None
    ) -> None:
        """The SDK v1's ``confusion_matrix`` (a dict or its JSON): ``class_labels`` and a square ``matrix``."""
        self._log_document("confusion_matrix", name, value, step, timestamp)

    def log_accuracy_table(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Moment = None
    ) -> None:
        """The SDK v1's ``accuracy_table``: true and false positives and negatives at thresholds, class by class."""
        self._log_document("accuracy_table", name, value, step, timestamp)

    def log_residuals(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Moment = None
    ) -> None:
        """The SDK v1's ``residuals``: ``bin_edges`` and ``bin_counts``."""
        self._log_document("residuals", name, value, step, timestamp)

    def log_predictions(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Moment = None
    ) -> None:
        """The SDK v1's ``predictions``: ``bin_averages``, ``bin_errors``, ``bin_counts`` and ``bin_edges``."""
        self._log_document("predictions", name, value, step, timestamp)

    def log_histogram(
        self,
        name: str,
        values: Any = None,
        bins: int = 64,
        step: int | None = None,
        timestamp: Moment = None,
        *,
        bin_edges: Any = None,
        bin_counts: Any = None,
    ) -> None:
        """How values are distributed: of numbers, an array or a tensor; or of bins that were counted elsewhere."""
        from runyard.context import documents, format

        data = documents.histogram(name, values, bins, bin_edges, bin_counts)
        self._journal.log_document(name, format.HISTOGRAM, data, step, timestamp)

    def log_text(self, name: str, text: str, step: int | None = None, timestamp: Moment = None) -> None:
        """A text to be read: a sample that a model wrote, a note."""
        from runyard.context import documents, format

        self._journal.log_document(name, format.NOTE, documents.text(name, text), step, timestamp)

    def _log_document(self, kind: str, name: str, value: Any, step: int | None, timestamp: Moment) -> None:
        from runyard.context import documents

        data = documents.document(kind, name, value)
        self._journal.log_document(name, documents.RECORD_OF_KIND[kind], data, step, timestamp)

    def _keep_image(self, name: str, data: Path | BinaryIO) -> None:
        raise AssertionError("a run keeps its own files")


def image_source(name: str, path: Any, plot: Any) -> Path | io.BytesIO:
    """The file that ``log_image`` was given, or what a plot looks like as a PNG."""
    if (path is None) == (plot is None):
        raise RunyardException(f"log_image({name!r}) takes either path or plot", hint="give exactly one of the two")
    if path is not None:
        from pathlib import Path

        if not Path(path).is_file():
            raise UserErrorException(f"there is no image {str(path)!r} to log as {name!r}")
        return Path(path)
    figure: Any = plot if hasattr(plot, "savefig") else getattr(plot, "figure", None)  # an axes knows its figure
    if not hasattr(figure, "savefig"):
        raise UserErrorException(
            f"log_image({name!r}): a {type(plot).__name__} is no plot",
            hint="give a matplotlib figure, axes, or plt itself",
        )
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    drawn.seek(0)
    return drawn


class _NoJournal:
    dropped = 0

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> None:
            raise UserErrorException(
                "on an SSH host, metrics can be logged to the run of the script, not to another one",
                hint="log them to Run.get_context(), with a name or a step of their own",
            )

        return refuse
