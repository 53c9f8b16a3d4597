"""Variables and log line that inform a script about a retry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runyard.launch.order import WorkOrder
from runyard.launch.variables import attempt_variables
from runyard.spec.folder import RunFolder


def add_attempt_variables(order: WorkOrder, folder: RunFolder) -> WorkOrder:
    """Add the variables of the attempt, with paths on this node."""
    return replace(order, variables={**order.variables, **attempt_variables(order.attempt, folder)})


def log_attempt(order: WorkOrder, log: Path) -> None:
    if order.attempt > 1:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"--- attempt {order.attempt}: {order.retry_reason or 'retried'} ---\n")
