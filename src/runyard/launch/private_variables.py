"""Delivery of private variables to an agent: in an anonymous file in memory, or in a file that the agent deletes.

The environment of a training process may contain secrets. They must neither stay on disk nor appear in the command
line of a process, which every user of a machine can read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runyard.launch.order import WorkOrder
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import HomeFolder, RunFolder


def open_memory_file(variables: Mapping[str, str]) -> int:
    """Create a file without a name; return its descriptor, to be passed to the agent's process."""
    descriptor = os.memfd_create("runyard-private-variables", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(variables_text(variables).encode())
    return descriptor


def read_memory_file(descriptor: int) -> dict[str, str]:
    """Read the variables and close the descriptor."""
    try:
        # from the start: a process that received the same file before may have moved the position
        return _decode(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    finally:
        os.close(descriptor)


def delivery_path(folder: RunFolder, attempt: int, node_rank: int) -> Path:
    """The file for one node, where the agent is started by another system and nothing can be passed to it."""
    return _deliveries(folder) / f"{folder.root.name}.{attempt}.{node_rank}.json"


def write_delivery(path: Path, variables: Mapping[str, str]) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_text(path, variables_text(variables))


def variables_text(variables: Mapping[str, str]) -> str:
    return json.dumps(dict(variables))


def take_delivery(path: Path) -> dict[str, str]:
    """Read the variables and delete the file; empty if there is none."""
    try:
        variables = _decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    path.unlink(missing_ok=True)
    return variables


def delete_deliveries(folder: RunFolder) -> None:
    """Delete the files that no agent has read, of a run that has ended."""
    name = folder.root.name
    with suppress(OSError):
        for path in list(_deliveries(folder).iterdir()):
            if path.name.rsplit(".", 3)[0] == name:
                path.unlink(missing_ok=True)


def add_private_variables(order: WorkOrder, variables: Mapping[str, str]) -> WorkOrder:
    """The order with the complete environment of its processes, for the agent's memory only."""
    return replace(order, variables={**variables, **order.private, **order.variables}, private={})


def missing_secrets(order: WorkOrder) -> list[str]:
    """Names of secret variables that did not reach the agent."""
    return [name for name in order.secret_variables if name not in order.variables]


def _deliveries(folder: RunFolder) -> Path:
    return HomeFolder(folder.root.parent.parent).deliveries


def _decode(content: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in json.loads(content or b"{}").items()}
