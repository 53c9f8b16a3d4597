"""Waiting until the yard knows the content of a dataset: the first time, files are read, or brought from afar."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from runyard.spec.dataset import DatasetDefinition
from runyard.spec.json import to_json

if TYPE_CHECKING:
    from runyard.client.connection import Connection

_A_WHILE_S = 5.0


def pin(connection: Connection, definition: DatasetDefinition) -> dict[str, Any]:
    """Its digest, files and bytes as they are now. What takes longer than some seconds says how far it is."""
    request = {"definition": to_json(definition), "wait_s": _A_WHILE_S}
    told = False
    while True:
        state: dict[str, Any] = connection.post("/api/datasets/pin", request)
        if state["done"]:
            if told:
                _say("\n")
            return state
        told = True
        _say(f"\r{state['doing'] or 'reading the dataset'}\x1b[K")


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()
