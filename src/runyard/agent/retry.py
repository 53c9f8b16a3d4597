"""A run that is tried again, as its script sees it: a line in the log, and where the earlier attempts left off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from runyard.launch.order import WorkOrder
from runyard.launch.variables import attempt_variables
from runyard.spec.folder import RunFolder


def told(order: WorkOrder, folder: RunFolder) -> WorkOrder:
    """The order with the variables of its attempt, where they are not in it: the folder is this node's own."""
    return replace(order, variables={**order.variables, **attempt_variables(order.attempt, folder)})


def announce(order: WorkOrder, log: Path) -> None:
    if order.attempt > 1:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"--- attempt {order.attempt}: {order.retried_for or 'tried again'} ---\n")
