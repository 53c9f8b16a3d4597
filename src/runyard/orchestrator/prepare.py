"""Preparing: the environment of a run, built or found, with every step said in the run's own log."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runyard import clock
from runyard.environments.manager import Prepared
from runyard.errors import RunyardException
from runyard.lifecycle.state import End, EndReason
from runyard.orchestrator import placement
from runyard.orchestrator.components import Rooms
from runyard.posix.atomic_write import write_text
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord


def prepare(rooms: Rooms, record: RunRecord, say: Callable[[str], None], abandoned: threading.Event) -> Prepared:
    folder = rooms.folder(record.run_id)
    folder.logs.mkdir(parents=True, exist_ok=True)
    began = clock.monotonic()
    with open(folder.environment_log, "a", encoding="utf-8", errors="replace") as log:

        def tell(text: str) -> None:
            log.write(f"[{clock.monotonic() - began:7.2f} s] {text}\n")
            log.flush()
            say(text)

        prepared = placement.prepare(rooms, record, tell, abandoned).prepared
    folder.lock_file.write_text(prepared.lock, encoding="utf-8")
    return prepared


def at_once(rooms: Rooms, run_id: str, spec: RunSpec) -> Prepared | None:
    """For a new run whose environment is there: it takes its place in line as it comes in, and nobody who came later
    is before it because a thread was quicker. None: ``prepare`` has something to do. What no environment could be is
    refused here, before there is a run."""
    said: list[str] = []
    prepared = placement.at_once(rooms, spec, said.append)
    folder = rooms.folder(run_id)
    if prepared is not None and not folder.lock_file.exists():  # else it is a submission that was sent again
        folder.logs.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"[{0.0:7.2f} s] {text}\n" for text in said)
        folder.environment_log.write_text(lines, encoding="utf-8", errors="replace")
        write_text(folder.lock_file, prepared.lock)  # half of it, on a full disk, would be taken for the whole
    return prepared


def refuse_impossible(rooms: Rooms, spec: RunSpec) -> None:
    """What no environment could be, of a run that is not prepared yet."""
    placement.at_once(rooms, spec, lambda text: None)


def data_failure(error: RunyardException) -> End:
    """Why the data of a run did not come."""
    said = f"{error.message}: {error.hint}" if error.hint else error.message
    return End(EndReason.LAUNCH_FAILED, said)


def failure(rooms: Rooms, record: RunRecord, error: RunyardException) -> End:
    """The builder's real message is the run's error."""
    log = rooms.folder(record.run_id).environment_log
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:] if log.exists() else []
    return End(EndReason.ENVIRONMENT_FAILED, str(error), last_lines="\n".join(lines))
