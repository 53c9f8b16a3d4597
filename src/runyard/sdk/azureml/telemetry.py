"""Telemetry: a yard collects and sends nothing."""

from __future__ import annotations

import sys
from typing import Any


def set_diagnostics_collection(
    send_diagnostics: bool = True, verbosity: int = 20, reason: str = "", path: Any = None
) -> None:
    """Print that nothing is collected."""
    sys.stdout.write("Nothing is collected or sent, regardless of this setting.\n")
