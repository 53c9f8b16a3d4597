"""JSON responses. orjson serializes dataclasses directly, so nothing is validated or copied."""

from __future__ import annotations

import json
import math
import os
from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import Response
from fastapi.responses import StreamingResponse

from runyard.orchestrator.conductor import Conductor
from runyard.run_table.views import read_views
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json
from runyard.store.runs import RunRecord
from runyard.wire.runs import AttemptView, EndView, RunView

KEEP_ALIVE = b": still here\n\n"  # a comment in an event stream; clients treat a silent connection as broken


def json_response(value: Any, status: int = 200) -> Response:
    return Response(encode_json(value), status, media_type="application/json")


def event_stream_response(events: AsyncIterator[bytes]) -> Response:
    # a proxy must neither buffer events nor cache them
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def encode_event(name: str, value: Any, event_id: int | None = None) -> bytes:
    """Encode a server-sent event. JSON has no raw line breaks, so the data cannot end the event early."""
    head = f"event: {name}\n" if event_id is None else f"id: {event_id}\nevent: {name}\n"
    return head.encode() + b"data: " + (value if isinstance(value, bytes) else encode_json(value)) + b"\n\n"


def encode_json(value: Any) -> bytes:
    """Falls back to ``json`` for integers of more than 64 bits and invalid Unicode, which orjson rejects."""
    try:
        return orjson.dumps(value, default=os.fspath)
    except orjson.JSONEncodeError:
        return json.dumps(_replace_non_finite(to_json(value)), default=os.fspath).encode()


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinities by None, as orjson does: browsers cannot parse Python's spelling of them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    return [_replace_non_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def run_page_response(conductor: Conductor, numbers: list[int], *, has_more: bool) -> Response:
    """A ``RunPage`` of the runs with these numbers; the views are encoded without creating an object per run."""
    components = conductor.components
    with components.database.read() as connection:
        views = read_views(connection, numbers, HomeFolder(components.home).runs, conductor.activity_of)
    following = numbers[-1] if has_more else None
    body = b'{"runs":[' + b",".join(views) + b'],"next":' + orjson.dumps(following) + b"}"
    return Response(body, media_type="application/json")


def run_view(conductor: Conductor, record: RunRecord) -> RunView:
    tags, properties = conductor.components.runs.labels([record.run_id])[record.run_id]
    activity, since = conductor.activity(record)
    end = record.life.end
    return RunView(
        run_id=record.run_id,
        number=record.number,
        experiment=record.experiment,
        status=record.life.state.value,
        type=record.type,
        name=record.name,
        parent_id=record.parent_id,
        root_id=record.root_id,
        target=record.target,
        snapshot_id=record.snapshot_id,
        environment_key=record.environment_key,
        submitted_by=record.submitted_by,
        created_at=record.created_at,
        started_at=record.started_at,
        ended_at=record.ended_at,
        end=EndView(**{**vars(end), "reason": end.reason.value}) if end and record.life.state.is_terminal else None,
        timeline=record.timeline,
        activity=activity,
        activity_since=since,
        warnings=[warning.text for warning in record.warnings],
        tags=tags,
        properties=properties,
        spec=record.spec,
        folder=str(conductor.components.folder(record.run_id).root),
        version=record.version,
        attempt=record.life.attempt,
        attempts=[
            AttemptView(number, attempt.end.reason.value, attempt.end.message, attempt.end.node, attempt.ended_at)
            for number, attempt in enumerate(record.life.earlier_attempts, 1)
        ],
    )
