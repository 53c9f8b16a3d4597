"""Telemetry: a yard sends nothing to anybody, whatever it is told."""

from __future__ import annotations

import sys
from typing import Any


def set_diagnostics_collection(
    send_diagnostics: bool = True, verbosity: int = 20, reason: str = "", path: Any = None
) -> None:
    """Says in one line that nothing is collected."""
    sys.stdout.write("Nothing is collected or sent: diagnostics stay on this machine, whatever is set.\n")
