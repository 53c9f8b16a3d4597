"""Imports the user's packages on demand; the error for a missing one contains the command that installs it."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from runyard.errors import OnnxExportException

_DISTRIBUTIONS = {"onnxruntime.quantization": "onnxruntime"}


def require(*names: str, purpose: str) -> list[Any]:
    """Return the modules in order. The error names all that are missing."""
    modules, missing = [], []
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.split(".")[0] != name.split(".")[0]:
                raise  # it is installed, but a dependency of it is missing
            missing.append(_DISTRIBUTIONS.get(name, name))
    if missing:
        raise OnnxExportException(
            f"{purpose} needs {' and '.join(dict.fromkeys(missing))}, which this Python does not have",
            hint=f"pip install {' '.join(dict.fromkeys(missing))}",
        )
    return modules


def version_of(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings of exporters, and the graphs that they write to stderr before they raise an error."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
