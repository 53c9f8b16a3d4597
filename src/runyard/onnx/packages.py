"""The user's packages, imported when they are needed; one that is missing is named with the line that installs it."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from runyard.errors import OnnxExportException

_CALLED = {"onnxruntime.quantization": "onnxruntime"}


def needed(*names: str, why: str) -> list[Any]:
    """The modules, in order. All that are missing are named at once."""
    found, lacking = [], []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.split(".")[0] != name.split(".")[0]:
                raise  # it is there, and lacks something itself
            lacking.append(_CALLED.get(name, name))
    if lacking:
        raise OnnxExportException(
            f"{why} needs {' and '.join(dict.fromkeys(lacking))}, which this Python does not have",
            hint=f"pip install {' '.join(dict.fromkeys(lacking))}",
        )
    return found


def version_of(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Exporters warn of what is theirs to decide, and write whole graphs on stderr before they raise what says why."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
