"""The datasets of a run in its record: what they pointed to when it was submitted, and whether that is the same now."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from runyard.errors import RunyardException
from runyard.orchestrator.components import Rooms
from runyard.spec.data import DataUse
from runyard.spec.json import from_json, to_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord
from runyard.wire.runs import SubmitRun

RERUN_OF = "runyard.rerun_of"


def with_digests(rooms: Rooms, request: SubmitRun) -> SubmitRun:
    """Every dataset with the digest of its content now. A run that is run again says what has changed since."""
    given = request.spec.get("data") or ()
    if not any(use.get("dataset") for use in given) or rooms.runs.has(request.run_id):
        return request
    uses = [from_json(DataUse, use) for use in given]
    now = [rooms.datasets.pin_use(use) if use.dataset is not None else use for use in uses]
    warnings = list(request.warnings)
    before = _before(rooms, request)
    for use in now:
        if use.dataset is not None and use.name in before and before[use.name] != use.dataset.digest:
            warnings.append(
                f"the data of {use.name!r} is not what run {request.properties[RERUN_OF]} had: "
                f"digest {(use.dataset.digest or '')[:12]} now, {before[use.name][:12]} then"
            )
    return replace(request, spec={**request.spec, "data": to_json(now)}, warnings=warnings)


def changed_since(rooms: Rooms, record: RunRecord) -> list[str]:
    """Warnings, said when the run starts: it may have waited for days, and a folder that is read in place goes on
    living."""
    found = []
    for use in from_json(RunSpec, record.spec).data:
        if use.dataset is None or use.dataset.digest is None:
            continue
        try:
            now = rooms.datasets.pin_use(use).dataset
        except RunyardException as error:
            found.append(f"the data of {use.name!r} cannot be read any more: {error.message}")
            continue
        if now is not None and now.digest != use.dataset.digest:
            found.append(
                f"the data of {use.name!r} has changed since the run was submitted: "
                f"digest {(now.digest or '')[:12]} now, {use.dataset.digest[:12]} then"
            )
    return found


def inputs_told(rooms: Rooms, spec: RunSpec) -> str:
    """What a script needs to know of its datasets besides their paths, as JSON for a variable.

    Without their sources: there may be thousands, a variable holds 128 kB, and on the node they are files.
    """
    told: dict[str, Any] = {}
    for use in spec.data:
        if use.dataset is None:
            continue
        told[use.name] = {"direct": use.dataset.direct}
        if use.dataset.direct:
            definition = rooms.datasets.definition_of(use)
            told[use.name]["dataset"] = {
                "dataset_id": use.dataset.id,
                "name": use.dataset.name,
                "version": use.dataset.version,
                "digest": use.dataset.digest,
                "description": None,
                "tags": {},
                "definition": to_json(replace(definition, sources=())),
            }
    return json.dumps(told) if told else ""


def _before(rooms: Rooms, request: SubmitRun) -> dict[str, str]:
    earlier = request.properties.get(RERUN_OF)
    if not earlier or not rooms.runs.has(earlier):
        return {}
    return {use.name: use.digest for use in rooms.datasets.saved.uses_of([earlier]) if use.digest}
