"""The description of each run in its own folder, from which a run that is missing in the database can be restored.

It is written when the run is admitted and when it has ended. It is a copy: while the database is intact, nothing reads
it.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runyard.errors import UserErrorException
from runyard.orchestrator.components import Components
from runyard.posix.atomic_write import write_bytes
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json
from runyard.spec.names import EXPERIMENT_NAME, RUN_ID
from runyard.spec.run import RunSpec
from runyard.store.run_labels import Labels
from runyard.store.runs import RunRecord, from_columns, to_columns
from runyard.tracking.artifacts import Artifact, validate_path

log = logging.getLogger(__name__)
_MAX_BYTES = 64 << 20  # a script can write to its folder: a huge file must not be read into memory


@dataclass(frozen=True)
class RunDescription:
    record: RunRecord
    tags: Labels
    properties: Labels
    params: dict[str, str]
    artifacts: list[Artifact]


def describe_new_run(components: Components, record: RunRecord, tags: Labels, properties: Labels) -> None:
    with suppress(OSError):  # reported below
        components.folder(record.run_id).root.mkdir(parents=True, exist_ok=True)
    _write(components, record, tags, properties, {}, [])


def describe_ended_run(components: Components, record: RunRecord) -> None:
    run_id = record.run_id
    tags, properties = components.runs.labels([run_id])[run_id]
    params = components.runs.params([run_id])[run_id]
    _write(components, record, tags, properties, params, components.artifacts.files(run_id))


def read_description(folder: RunFolder) -> RunDescription:
    """Raises OSError or ValueError if there is no description or it is not one of this run."""
    path = folder.description
    text = read_regular(path, _MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"{path.name} is too large")
    try:
        content = json.loads(text)
        record = from_columns(dict(content["run"]))
        _check(record, folder.root.name)
        return RunDescription(
            record,
            _labels(content["tags"]),
            _labels(content["properties"]),
            {key: value or "" for key, value in _labels(content["params"]).items()},
            [
                Artifact(validate_path(file["path"]), _digest(file["digest"]), int(file["size"]))
                for file in content["files"]
            ],
        )
    except (KeyError, TypeError, AttributeError, RecursionError, UserErrorException) as error:
        raise ValueError(f"{path.name} is damaged: {error!r}") from error


def _write(
    components: Components,
    record: RunRecord,
    tags: Labels,
    properties: Labels,
    params: dict[str, str],
    artifacts: list[Artifact],
) -> None:
    content = {
        "run": to_columns(record),
        "tags": tags,
        "properties": properties,
        "params": params,
        "files": [vars(artifact) for artifact in artifacts],
    }
    try:
        write_bytes(components.folder(record.run_id).description, json.dumps(content).encode())
    except OSError as error:  # a full disk or a folder that was removed: the run itself must not fail
        log.warning("run %s: its description could not be written: %s", record.run_id, error)


def _check(record: RunRecord, run_id: str) -> None:
    if record.run_id != run_id or not RUN_ID.fullmatch(run_id) or not EXPERIMENT_NAME.fullmatch(record.experiment):
        raise ValueError("it describes another run")
    texts = (record.parent_id, record.root_id, record.type, record.name, record.target, record.snapshot_id)
    if not all(isinstance(text, (str, type(None))) for text in (*texts, record.environment_key, record.submitted_by)):
        raise ValueError("it has a field with a value that is not text")
    times = [time for time in (record.created_at, record.started_at, record.ended_at) if time is not None]
    if not all(isinstance(time, (int, float)) for time in (*times, *record.timeline.values())):
        raise ValueError("it has a time that is not a number")
    if record.spec is not None:
        from_json(RunSpec, record.spec)


def _labels(values: Any) -> Labels:
    labels: Labels = {}
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, (str, type(None))):
            raise ValueError(f"invalid label {key!r}")
        labels[key] = value
    return labels


def _digest(text: Any) -> str:
    if not isinstance(text, str) or len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"invalid hash {text!r}")
    return text
