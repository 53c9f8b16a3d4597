"""Waits until the yard has hashed a dataset's content; the first time, it reads or downloads all files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from runyard.spec.dataset import DatasetDefinition
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.client.connection import Connection

_POLL_S = 5.0


def pin(connection: Connection, definition: DatasetDefinition) -> dict[str, Any]:
    """Return the current digest, number of files and bytes. Shows the progress on a terminal if it takes long."""
    request = {"definition": to_json(definition), "wait_s": _POLL_S}
    has_reported = False
    while True:
        state: dict[str, Any] = connection.post("/api/datasets/pin", request)
        if state["done"]:
            if has_reported:
                _report("\n")
            return state
        has_reported = True
        _report(f"\r{state['doing'] or 'reading the dataset'}\x1b[K")


def _report(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()
