"""The end of a run: its metrics read to the last point, its outputs kept, its working copy gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress

from runyard.compute.base import Handle
from runyard.errors import ComputeTargetException, RunNotFound, RunyardException
from runyard.lifecycle.state import EndReason
from runyard.lifecycle.warning import RunWarning, incomplete, is_incomplete, notes
from runyard.orchestrator import data
from runyard.orchestrator.components import Rooms
from runyard.orchestrator.run_files import written_folders
from runyard.posix.atomic_write import remove_stale_drafts
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.store.runs import RunRecord
from runyard.tracking.event_files import EventFile, find_event_files, ingest_event_files
from runyard.tracking.ingest import dropped_points, ingest
from runyard.tracking.series_index import system_run
from runyard.wire.event_records import is_event_file


def finalize(rooms: Rooms, record: RunRecord, say: Callable[[str], None]) -> tuple[RunWarning, ...]:
    """Returns warnings: what could not be kept. Doing it twice is safe."""
    folder = rooms.folder(record.run_id)
    compute, handle = rooms.target(record).compute, Handle(record.run_id, str(folder.root))
    names = [*(name for name, _ in written_folders(rooms, record)), *data.uploaded_folders(record)]
    warnings = list(compute.collect(handle, names))
    warnings += data.send(rooms, record, say)  # before what is in outputs/ moves away from there
    ingest(rooms.database, record.run_id, folder.journal, final=True)
    ingest(rooms.database, system_run(record.run_id), folder.system, final=True)
    lost = dropped_points(rooms.database, record.run_id)
    if lost:
        warnings.append(RunWarning(f"{lost:,} metric points were lost: the disk was full while the script logged them"))
    # before their files are moved: those that stand in two places would be read from both
    _, damaged = ingest_event_files(rooms.database, record.run_id, find_event_files(written_folders(rooms, record)))
    warnings += notes(damaged)
    for name, source in written_folders(rooms, record):
        if source.is_symlink():
            # its files are somebody's own, elsewhere: to move them here would take them away
            warnings.append(RunWarning(f"{name}/ was left out: it is a link that leads out of the run's folder"))
        elif source.is_dir():
            try:
                warnings += notes(rooms.artifacts.keep_tree(record.run_id, source, name, move=True).warnings)
            except (RunyardException, OSError) as error:  # the run's verdict stands; what was lost is said
                warnings.append(incomplete(f"{name}/ is incomplete: {error}"))
    read_uploaded_event_files(rooms, record.run_id)
    data.leave_spots(rooms, record)  # before anybody hears of the end: whoever waited for it finds nothing there
    if record.life.managed and not is_incomplete(warnings):
        # before anybody hears that the run has ended: whoever waited for it may remove its target at once
        compute.forget(handle)
    return tuple(warnings)


def read_uploaded_event_files(rooms: Rooms, run_id: str) -> None:
    """Those that an interactive run, or a script, has uploaded itself."""
    kept = [file.path for file in rooms.artifacts.files(run_id) if is_event_file(file.path)]
    ingest_event_files(
        rooms.database, run_id, [EventFile(name, rooms.artifacts.path_of(run_id, name)) for name in kept]
    )


def tidy(rooms: Rooms, record: RunRecord) -> None:
    """Files outside outputs/ and logs/ are not kept; after a failure to keep them the copy stays, to look at."""
    folder = rooms.folder(record.run_id)
    data.forget(rooms, record)
    remove_stale_drafts(folder.root)
    if is_incomplete(record.warnings):
        return
    end = record.life.end
    if record.life.managed and end is not None and end.reason is EndReason.LAUNCH_FAILED:  # it was not finalized
        with suppress(ComputeTargetException):  # the target was removed since: nothing of it is left to tell
            rooms.target(record).compute.forget(Handle(record.run_id, str(folder.root)))
    shutil.rmtree(folder.work, ignore_errors=True)


def tidy_leftovers(rooms: Rooms) -> None:
    """For the start of a yard: working copies of runs that ended just before a former one was killed."""
    for work in HomeFolder(rooms.home).runs.glob(f"*/{RunFolder.WORK}"):
        with suppress(RunNotFound):
            record = rooms.runs.load(work.parent.name)
            if record.life.state.is_terminal:
                tidy(rooms, record)
