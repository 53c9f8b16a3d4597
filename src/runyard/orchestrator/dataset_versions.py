"""Pins the datasets of a run to digests at submission, and detects changes since then."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from runyard.data.datasets import Datasets
from runyard.errors import RunyardException
from runyard.orchestrator.components import Components
from runyard.spec.data import DataUse
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord
from runyard.wire.runs import SubmitRun

RERUN_OF = "runyard.rerun_of"


def pin_datasets(components: Components, request: SubmitRun) -> SubmitRun:
    """The request with the current digest of each dataset. For a rerun, with warnings about changed data."""
    data = request.spec.get("data") or ()
    if not any(use.get("dataset") for use in data) or components.runs.has(request.run_id):
        return request
    uses = [from_json(DataUse, use) for use in data]
    pinned = [components.datasets.pin_use(use) if use.dataset is not None else use for use in uses]
    warnings = list(request.warnings)
    previous = _previous_digests(components, request)
    for use in pinned:
        if use.dataset is not None and use.name in previous and previous[use.name] != use.dataset.digest:
            warnings.append(
                f"the data of {use.name!r} differs from that of run {request.properties[RERUN_OF]}: "
                f"digest {(use.dataset.digest or '')[:12]} now, {previous[use.name][:12]} then"
            )
    return replace(request, spec={**request.spec, "data": to_json(pinned)}, warnings=warnings)


def changed_datasets(datasets: Datasets, record: RunRecord) -> list[str]:
    """Warnings about datasets that changed while the run waited: a folder that is read in place may be modified."""
    warnings = []
    for use in from_json(RunSpec, record.spec).data:
        if use.dataset is None or use.dataset.digest is None:
            continue
        try:
            current = datasets.pin_use(use).dataset
        except RunyardException as error:
            warnings.append(f"the data of {use.name!r} can no longer be read: {error.message}")
            continue
        if current is not None and current.digest != use.dataset.digest:
            warnings.append(
                f"the data of {use.name!r} has changed since the run was submitted: "
                f"digest {(current.digest or '')[:12]} now, {use.dataset.digest[:12]} then"
            )
    return warnings


def input_datasets(datasets: Datasets, spec: RunSpec) -> str:
    """The JSON value of RUNYARD_INPUT_DATASETS: what a script needs to know about its datasets besides their paths.

    Without their sources: there may be thousands, a variable is limited to 128 kB, and on the node they are files.
    """
    inputs: dict[str, Any] = {}
    for use in spec.data:
        if use.dataset is None:
            continue
        inputs[use.name] = {"direct": use.dataset.direct}
        if use.dataset.direct:
            inputs[use.name]["dataset"] = {
                "dataset_id": use.dataset.id,
                "name": use.dataset.name,
                "version": use.dataset.version,
                "digest": use.dataset.digest,
                "description": None,
                "tags": {},
                "definition": to_json(replace(datasets.definition_of(use), sources=())),
            }
    return json.dumps(inputs) if inputs else ""


def _previous_digests(components: Components, request: SubmitRun) -> dict[str, str]:
    """Of the run that is run again."""
    run_id = request.properties.get(RERUN_OF)
    if not run_id or not components.runs.has(run_id):
        return {}
    return {use.name: use.digest for use in components.datasets.saved.uses_by_runs([run_id]) if use.digest}
