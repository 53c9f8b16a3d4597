"""The end of a run: read its last metrics, store its outputs, delete its working copy."""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress

from sqlalchemy.exc import OperationalError

from runyard.compute.base import ProgressCallback
from runyard.errors import ComputeTargetException, RunNotFound, RunyardException
from runyard.launch.private_variables import delete_deliveries
from runyard.lifecycle.state import EndReason
from runyard.lifecycle.warning import RunWarning, incomplete, is_incomplete, notes
from runyard.orchestrator import data
from runyard.orchestrator.components import Components
from runyard.orchestrator.run_files import output_folders
from runyard.posix.atomic_write import remove_stale_drafts
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.store.database import is_disk_full
from runyard.store.runs import RunRecord
from runyard.tracking.event_files import EventFile, find_event_files, ingest_event_files
from runyard.tracking.ingest import dropped_points, ingest
from runyard.tracking.series_index import system_run_id
from runyard.wire.event_records import is_event_file
from runyard.wire.exchange import EVENT_FILES_FOLDER, IMPORTED_FROM, TENSORBOARD

log = logging.getLogger(__name__)


def finalize(components: Components, record: RunRecord, report: ProgressCallback) -> tuple[RunWarning, ...]:
    """Store everything that an ended run wrote, and return warnings about what was lost. May be repeated."""
    compute, handle = components.target(record).compute, components.handle(record)
    names = [*(name for name, _ in output_folders(components, record)), *data.upload_folders(record)]
    warnings = list(compute.collect(handle, names))
    warnings += data.upload_outputs(components, record, report)  # before the files in outputs/ are moved away
    warnings += _read_last_metrics(components, record)
    for name, source in output_folders(components, record):
        if source.is_symlink():
            # its files belong to another folder: moving them would take them away from there
            warnings.append(RunWarning(f"{name}/ was left out: it is a link that leads out of the run's folder"))
        elif source.is_dir():
            try:
                warnings += notes(components.artifacts.store_folder(record.run_id, source, name, move=True).warnings)
            except (RunyardException, OSError) as error:  # the end of the run does not change
                warnings.append(incomplete(f"{name}/ is incomplete: {error}"))
    ingest_uploaded_event_files(components, record.run_id)
    data.release_links(components, record)  # before the end is published: its links must be gone by then
    if record.life.managed and not is_incomplete(warnings):
        compute.discard(handle)  # before the end is published: a client that waits for it may remove the target
    return tuple(warnings)


def _read_last_metrics(components: Components, record: RunRecord) -> list[RunWarning]:
    """Read the metrics that remain. A file that cannot be read is a warning: the outputs must be stored in any case."""
    database, folder, run_id = components.database, components.folder(record.run_id), record.run_id
    warnings: list[RunWarning] = []
    try:
        ingest(database, run_id, folder.journal, final=True)
        ingest(database, system_run_id(run_id), folder.system, final=True)
        # before the files are moved: a file in both places would be read twice
        _, damaged = ingest_event_files(database, run_id, find_event_files(output_folders(components, record)))
        warnings += notes(damaged)
    except Exception as error:
        if is_disk_full(error) or isinstance(error, OperationalError):
            raise
        log.exception("run %s: its metrics could not be read", run_id)
        warnings.append(RunWarning(f"metrics are missing, because they could not be read: {type(error).__name__}"))
    dropped = dropped_points(database, run_id)
    if dropped:
        text = f"{dropped:,} metric points were lost: the disk was full while the script logged them"
        warnings.append(RunWarning(text))
    return warnings


def ingest_uploaded_event_files(components: Components, run_id: str) -> None:
    """Read the TensorBoard files that a script, an interactive run or an import of event files uploaded.

    The metrics of runs that were imported from other programs are complete: their event files would repeat them.
    """
    artifacts = components.artifacts
    names = [file.path for file in artifacts.files(run_id) if is_event_file(file.path)]
    source = components.runs.labels([run_id])[run_id][1].get(IMPORTED_FROM) if names else None
    if source not in (None, TENSORBOARD):
        return
    base = EVENT_FILES_FOLDER if source == TENSORBOARD else ""
    files = [EventFile(name, artifacts.source_of(run_id, name).path, base) for name in names]
    ingest_event_files(components.database, run_id, files)


def clean_up(components: Components, record: RunRecord) -> None:
    """Delete the working copy and the run's data. If outputs could not be stored, the working copy is kept."""
    folder = components.folder(record.run_id)
    data.discard(components, record)
    delete_deliveries(folder)
    remove_stale_drafts(folder.root)
    if is_incomplete(record.warnings):
        return
    end = record.life.end
    if record.life.managed and end is not None and end.reason is EndReason.LAUNCH_FAILED:  # it was not finalized
        with suppress(ComputeTargetException):  # the target was removed since, with everything on it
            components.target(record).compute.discard(components.handle(record))
    shutil.rmtree(folder.work, ignore_errors=True)


def clean_up_leftovers(components: Components) -> None:
    """At the start of the yard: working copies of runs that ended just before the previous yard was killed."""
    for work in HomeFolder(components.home).runs.glob(f"*/{RunFolder.WORK}"):
        try:
            record = components.runs.load(work.parent.name)
            if record.life.state.is_terminal:
                clean_up(components, record)
        except RunNotFound:
            continue
        except Exception:  # one run's folder must not keep the yard from starting
            log.exception("the working copy %s could not be removed", work)
