"""Changes of runs that have ended, which tracking clients may continue."""

from __future__ import annotations

from runyard.lifecycle import events as on
from runyard.orchestrator.conductor import Conductor


def resume(conductor: Conductor, run_id: str) -> None:
    """Continue an ended run that the yard did not start; others are left unchanged."""
    components = conductor.components
    record = components.runs.load(run_id)
    if record.life.managed or not record.life.state.is_terminal:
        return
    # its first process has ended: the next yard must not end the run because no process holds the lock
    components.folder(run_id).client_lock.unlink(missing_ok=True)
    conductor.post(run_id, on.Resumed())
