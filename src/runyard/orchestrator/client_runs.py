"""Runs that a tracking client opened inside the script of another run: they end with it at the latest.

The yard does not know their processes. A client that was killed must not leave them open, and the yard running.
"""

from __future__ import annotations

from collections.abc import Iterator

from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import TERMINAL, End, EndReason, RunState
from runyard.orchestrator.components import Components
from runyard.store.runs import RunRecord

CREATED_BY = "runyard.created_by"  # the property of such a run: the id of the run whose script opened it


def ends_of_client_runs(components: Components, creator: RunRecord) -> Iterator[tuple[str, on.Event]]:
    """The open runs of a script that has ended, and the events that end them."""
    run_ids = components.runs.descendants(creator.run_id)
    open_states = [state for state in RunState if state not in TERMINAL]
    if run_ids:
        for record in components.runs.find(
            run_ids=run_ids, states=open_states, properties={CREATED_BY: creator.run_id}, limit=len(run_ids)
        ):
            yield record.run_id, _event(creator)


def ended_creators(components: Components, unfinished: list[RunRecord]) -> list[RunRecord]:
    """Runs that ended while no yard was running, and whose scripts had opened some of the unfinished runs."""
    run_ids = [record.run_id for record in unfinished if not record.life.managed]
    creators = {properties.get(CREATED_BY) for _, properties in components.runs.labels(run_ids).values()}
    records = [_load(components, run_id) for run_id in sorted(filter(None, creators))]
    return [record for record in records if record is not None and record.life.state.is_terminal]


def _load(components: Components, run_id: str) -> RunRecord | None:
    try:
        return components.runs.load(run_id)
    except RunNotFound:
        return None


def _event(creator: RunRecord) -> on.Event:
    if creator.life.state is RunState.COMPLETED:
        return on.MarkedComplete()
    if creator.life.state is RunState.CANCELED:
        return on.CancelRequested()
    return on.MarkedFailed(End(EndReason.PROCESS_LOST, f"run {creator.run_id}, whose script opened it, has failed"))
