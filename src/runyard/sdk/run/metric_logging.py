"""Metric logging. It works the same inside and outside of the run's script: each process appends to its own journal."""

from __future__ import annotations

import io
import time

from runyard.context.journal import Journal
from runyard.errors import RunyardException, UserErrorException
from runyard.spec.folder import RunFolder

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from typing import Any, BinaryIO, Optional, Union

    Timestamp = Union[float, datetime, None]
    Document = Union[str, dict[str, Any]]


class MetricLogging:
    """The ``log*`` methods of a run.

    All of them take ``step``, the x-coordinate of the value, and ``timestamp``, the time of a value that was measured
    at another moment: seconds since 1970, or a datetime. ``description`` is accepted and not stored.
    """

    def __init__(self, folder: str, *, rank: int) -> None:
        self._journal = Journal(f"{folder}/{RunFolder.JOURNAL}", rank=rank)
        self._log = self._journal.log

    def _disable_journal(self) -> None:
        """Refuse to log: the run's folder is on another machine, and a journal written here would never be read."""
        self._journal = _DisabledJournal()  # type: ignore[assignment]  # has the methods that are called
        self._log = self._journal.log

    def log(
        self, name: str, value: Any, description: str = "", step: int | None = None, timestamp: Timestamp = None
    ) -> None:
        """Log one value of a metric.

        The call takes microseconds: the value is written to mapped memory, which survives a crash of this process.

        Args:
            name: Name of the metric.
            value: A number, text, bool or None.
            description: Not stored.
            step: X-coordinate of the value.
            timestamp: Time of the value, if it is not now.

        Raises:
            UserErrorException: ``value`` is a list, range or generator.
        """
        if timestamp is None:
            self._log(name, value, step)
        else:
            self._journal.log_at(name, value, timestamp, step)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        """Log all values of an iterable as one metric."""
        self._journal.log_list(name, value)

    def log_row(self, name: str, description: Optional[str] = None, **kwargs: Any) -> None:
        """Log one row of a table; ``kwargs`` are the columns."""
        self._journal.log_row(name, **kwargs)

    def log_table(
        self,
        name: str,
        value: dict[str, Any],
        description: str = "",
        step: int | None = None,
        timestamp: Timestamp = None,
    ) -> None:
        """Log a table: a dict of columns, each a list of the same length."""
        self._journal.log_table(name, value, step, timestamp)

    def log_image(
        self,
        name: str,
        path: str | None = None,
        plot: Any = None,
        description: str = "",
        step: int | None = None,
        timestamp: Timestamp = None,
    ) -> None:
        """Log an image, given either as a file or as a matplotlib plot.

        Args:
            name: Name of the metric.
            path: Path of an image file.
            plot: A matplotlib figure or axes, or ``plt`` for the current figure.
            description: Not stored.
            step: X-coordinate of the image.
            timestamp: Time of the image, if it is not now.

        Raises:
            RunyardException: Not exactly one of ``path`` and ``plot`` is given.
            UserErrorException: The file does not exist, or ``plot`` is not a plot.
        """
        source = _image_source(name, path, plot)
        if isinstance(source, io.BytesIO):
            # images of one name may be logged in the same second; the step distinguishes them
            artifact = f"{name}_{int(time.time())}{'' if step is None else f'_{step}'}.png"
        else:
            artifact = "/".join(part for part in source.parts if part not in ("/", "..", "."))
        self._store_image(artifact, source)
        self._journal.log_image(name, artifact, step, timestamp)

    def log_confusion_matrix(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Timestamp = None
    ) -> None:
        """Log a ``confusion_matrix`` of the SDK v1 (a dict or its JSON): ``class_labels`` and a square ``matrix``."""
        self._log_document("confusion_matrix", name, value, step, timestamp)

    def log_accuracy_table(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Timestamp = None
    ) -> None:
        """Log an ``accuracy_table`` of the SDK v1: true and false positives and negatives per threshold and class."""
        self._log_document("accuracy_table", name, value, step, timestamp)

    def log_residuals(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Timestamp = None
    ) -> None:
        """Log ``residuals`` of the SDK v1: ``bin_edges`` and ``bin_counts``."""
        self._log_document("residuals", name, value, step, timestamp)

    def log_predictions(
        self, name: str, value: Document, description: str = "", step: int | None = None, timestamp: Timestamp = None
    ) -> None:
        """Log ``predictions`` of the SDK v1: ``bin_averages``, ``bin_errors``, ``bin_counts`` and ``bin_edges``."""
        self._log_document("predictions", name, value, step, timestamp)

    def log_histogram(
        self,
        name: str,
        values: Any = None,
        bins: int = 64,
        step: int | None = None,
        timestamp: Timestamp = None,
        *,
        bin_edges: Any = None,
        bin_counts: Any = None,
    ) -> None:
        """Log the distribution of values.

        Args:
            name: Name of the metric.
            values: A list of numbers, an array or a tensor.
            bins: Number of bins for ``values``.
            step: X-coordinate of the histogram.
            timestamp: Time of the histogram, if it is not now.
            bin_edges: With ``bin_counts``, a histogram that was computed elsewhere; excludes ``values``.
            bin_counts: The counts of these bins.
        """
        from runyard.context import documents, format

        data = documents.make_histogram(name, values, bins, bin_edges, bin_counts)
        self._journal.log_document(name, format.HISTOGRAM, data, step, timestamp)

    def log_text(self, name: str, text: str, step: int | None = None, timestamp: Timestamp = None) -> None:
        """Log a text to read, such as a sample that the model generated."""
        from runyard.context import documents, format

        self._journal.log_document(name, format.NOTE, documents.validate_text(name, text), step, timestamp)

    def _log_document(self, kind: str, name: str, value: Any, step: int | None, timestamp: Timestamp) -> None:
        from runyard.context import documents

        data = documents.validate_document(kind, name, value)
        self._journal.log_document(name, documents.RECORD_OF_KIND[kind], data, step, timestamp)

    def _store_image(self, name: str, data: Path | BinaryIO) -> None:
        raise NotImplementedError


def _image_source(name: str, path: Any, plot: Any) -> Path | io.BytesIO:
    if (path is None) == (plot is None):
        raise RunyardException(f"log_image({name!r}) takes either path or plot", hint="give exactly one of the two")
    if path is not None:
        from pathlib import Path

        if not Path(path).is_file():
            raise UserErrorException(f"no image file {str(path)!r} to log as {name!r}")
        return Path(path)
    figure: Any = plot if hasattr(plot, "savefig") else getattr(plot, "figure", None)  # an axes has a figure
    if not hasattr(figure, "savefig"):
        raise UserErrorException(
            f"log_image({name!r}): expected a plot, got {type(plot).__name__}",
            hint="give a matplotlib figure, axes, or plt itself",
        )
    png = io.BytesIO()
    figure.savefig(png, format="png")
    png.seek(0)
    return png


class _DisabledJournal:
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
