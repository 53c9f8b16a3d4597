"""Placeholders in an order for values that differ from host to host, and their substitution."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.launch.order import WorkOrder
from runyard.spec.folder import HomeFolder

HOST_FOLDER = "/<host>"  # Runyard's folder on the host
HOST_PATH = "<PATH of the host>"


def translate(order: WorkOrder, facts: dict[str, Any], kit: Path) -> WorkOrder:
    """The order with the paths and variables of the host that reported these facts."""
    folder, home = str(facts["folder"]), str(facts["home"])
    run_folder = f"{home}/runs/{order.run_id}"
    substitutions = (
        (order.folder, run_folder),
        (str(kit), f"{folder}/kit/{kit.name}"),
        (HOST_FOLDER, folder),
        (HOST_PATH, str(facts["variables"].get("PATH", os.defpath))),
    )

    def substitute(text: str) -> str:
        for yard_text, host_text in substitutions:
            text = text.replace(yard_text, host_text)
        return text

    variables = {name: substitute(value) for name, value in order.variables.items()}
    private = {**{name: value for name, value in facts["variables"].items() if name not in variables}, **order.private}
    if "RUNYARD_HOME" in variables:
        endpoint = f"unix://{home}/{HomeFolder.SOCKET}"
        variables.update(RUNYARD_HOME=home, RUNYARD_YARD_ELSEWHERE="1", AZUREML_SERVICE_ENDPOINT=endpoint)
        variables.pop("RUNYARD_YARD_PYTHON", None)
    return replace(
        order,
        folder=run_folder,
        argv=tuple(substitute(argument) for argument in order.argv),
        variables=variables,
        private=private,
        stop_argv=tuple(substitute(argument) for argument in order.stop_argv),
        mpirun=substitute(order.mpirun),
        read_only=tuple(substitute(path) for path in order.read_only),
        py_spy="",
        notify_socket=f"{home}/{HomeFolder.NOTIFY_SOCKET}" if facts["has_socket"] else "",
    )
