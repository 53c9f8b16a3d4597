"""The data of one run: brought before it starts, found by its processes, and what they wrote sent afterwards."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard import clock
from runyard.compute.scheduling.queue import Placement
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.data_upload import Gift
from runyard.compute.ssh.placeholders import HOST_FOLDER
from runyard.data import copy
from runyard.data.base import clean_path, disk_error, join
from runyard.data.cache import copy_tree, record_trees
from runyard.data.copy import NamedStore, Progress, Upload
from runyard.data.mount_links import MountLink
from runyard.data.staging import InputFiles, Tree
from runyard.data.transfer_jobs import files_to_upload
from runyard.environments.container import ContainerPrepared
from runyard.environments.prepared import Prepared
from runyard.errors import RunNotFound, RunyardException, UserErrorException
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.orchestrator.components import Rooms
from runyard.spec.data import DOWNLOAD, MODES, UPLOAD, DataUse
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.store.database import is_full
from runyard.store.runs import RunRecord

Say = Callable[[str], None]
_UPLOADS = ".data"  # in the working copy, which comes back from wherever it is
_SAY_EVERY_S = 1.0


@dataclass(frozen=True)
class Given:
    """Where the processes find each use of data; paths on hosts in terms of ``HOST_FOLDER``."""

    paths: dict[str, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()  # of these, what others read as well: the script must not write there
    outside: tuple[str, ...] = ()  # what the script may write, outside of the run's folder


def uses_of(record: RunRecord) -> tuple[DataUse, ...]:
    given = record.spec.get("data") if record.spec else None  # asked at every step of every run: most have none
    return tuple(from_json(DataUse, use) for use in given) if given else ()


def check(rooms: Rooms, spec: RunSpec) -> None:
    """Everything about the data of a run that can be refused without asking anybody far away."""
    if not spec.data:
        return
    on_hosts = isinstance(rooms.targets.get(spec.target).compute, SshCompute)
    names: set[str] = set()
    spots: set[Path] = set()
    for use in spec.data:
        if use.mode not in MODES:
            raise UserErrorException(
                f"data {use.label!r}: there is no mode {use.mode!r}", hint=f"modes: {', '.join(MODES)}"
            )
        if use.name in names:
            raise UserErrorException(
                f"two uses of data have the name {use.name!r}", hint="give them names of their own"
            )
        names.add(use.name)
        place = Path(use.path_on_compute or "")
        if ".." in place.parts or (on_hosts and place.is_absolute()):
            raise UserErrorException(
                f"data {use.label!r}: path_on_compute {str(place)!r} is not below the run's working directory",
                hint="name it relative, such as 'data'; the script finds it by $AZUREML_DATAREFERENCE_…",
            )
        if _is_linked(use):
            spot = _spot(rooms, use)
            if spot.path in spots:
                raise UserErrorException(
                    f"two uses of data are to be at {spot.path}", hint="give them paths of their own"
                )
            spots.add(spot.path)
            spot.check()
        if use.dataset is not None:
            continue
        rooms.stager.stores.record(use.datastore)
        clean_path(use.path, f"data {use.name!r}: path")
        if use.mode == UPLOAD:
            rooms.stager.stores.open_to_write(use.datastore)
        else:
            rooms.stager.check_exists(use)


def fill(rooms: Rooms, record: RunRecord, say: Say, canceled: threading.Event) -> None:
    """Before the run has a place anywhere: what is far away comes into this machine's cache."""
    if not any(use.mode != UPLOAD for use in uses_of(record)):
        return
    on_hosts = isinstance(rooms.target(record).compute, SshCompute)
    try:
        with _told(rooms.folder(record.run_id), say) as tell:
            for use in uses_of(record):
                if use.mode != UPLOAD and (on_hosts or _comes_through_the_cache(rooms, use)):
                    ready = _gathered(
                        rooms, record, use, tell, canceled, cache_local_files=not on_hosts, report_cached=True
                    )
                    rooms.stager.prefetched[record.run_id, use.name] = ready
    finally:
        # canceled meanwhile, it was tidied up before all this was noted: its trees would be in use for ever
        if rooms.runs.load(record.run_id).life.state.is_terminal:
            forget(rooms, record)


def lay_out(rooms: Rooms, record: RunRecord, placement: Placement, say: Say, canceled: threading.Event) -> Given:
    """After the working copy is there: every use has its path, on this machine or on the hosts."""
    if not uses_of(record):
        return Given()
    paths: dict[str, str] = {}
    shared: list[str] = []
    outside: list[str] = []
    with _told(rooms.folder(record.run_id), say) as tell:
        for use in uses_of(record):
            path = real = _path_of(rooms, record, use, placement, tell, canceled)
            if _is_linked(use):
                path = str(_spot(rooms, use).create(Path(real), record.run_id, lambda run_id: _is_over(rooms, run_id)))
            paths[use.name] = path
            if use.mode != UPLOAD and not _wants_copy(use):
                shared += [real, path]
            elif not Path(path).is_relative_to(rooms.folder(record.run_id).root):
                outside.append(path)
    return Given(paths, tuple(dict.fromkeys(shared)), tuple(dict.fromkeys(outside)))


def rehearsed(record: RunRecord) -> Given:
    return Given({use.name: f"<data {use.name}>" for use in uses_of(record)})


def variables(record: RunRecord, given: Given) -> dict[str, str]:
    found = {}
    for use in uses_of(record):
        found.update(dict.fromkeys(use.variables, given.paths[use.name]))
    return found


def written(record: RunRecord, given: Given) -> RunSpec:
    """The specification with paths in place of what stands for datasets; variables are expanded on the node."""
    spec = from_json(RunSpec, record.spec)
    stands_for: Mapping[str, str] = {
        # scripts of the SDK v1 look for the dataset itself by what they are given, where they are not given a path
        use.placeholder: use.dataset.id if use.dataset.direct else given.paths[use.name]
        for use in uses_of(record)
        if use.dataset is not None
    }
    return replace(spec, arguments=tuple(stands_for.get(word, word) for word in spec.arguments))


def shown_to(prepared: Prepared, given: Given) -> Prepared:
    """A container sees the run's folder, and what it is shown besides."""
    if not isinstance(prepared, ContainerPrepared):
        return prepared
    mounts = [f"{path}:{path}:ro" for path in given.shared] + [f"{path}:{path}" for path in given.outside]
    volumes = [word for mount in mounts for word in ("--volume", mount)]
    return replace(prepared, argv_prefix=(*prepared.argv_prefix, *volumes))


def uploaded_folders(record: RunRecord) -> list[str]:
    """Of the working copy: what has to come back from a host."""
    return [_upload_place(use) for use in uses_of(record) if use.mode == UPLOAD and not _is_absolute(use)]


def send(rooms: Rooms, record: RunRecord, say: Say) -> list[RunWarning]:
    """What the script wrote, however it ended. Each file is there whole or not at all; returns warnings."""
    warnings: list[RunWarning] = []
    for use in uses_of(record):
        if use.mode != UPLOAD:
            continue
        source = _absolute(rooms.folder(record.run_id), use)
        try:
            with _told(rooms.folder(record.run_id), say) as tell:
                warnings += notes(f"data {use.label}: {text}" for text in _sent(rooms, use, source, tell))
        except (RunyardException, OSError) as error:  # the rest of what the run leaves is kept nevertheless
            if is_full(error):
                raise  # tried again, until there is room
            said = disk_error(error, source).message if isinstance(error, OSError) else error.message
            warnings.append(incomplete(f"data {use.label} in datastore {use.datastore!r} is incomplete: {said}"))
    return warnings


def leave_spots(rooms: Rooms, record: RunRecord) -> None:
    """The paths outside of the run where its data was; more than once does no harm."""
    for use in uses_of(record):
        if _is_linked(use):
            _spot(rooms, use).release(record.run_id)


def forget(rooms: Rooms, record: RunRecord) -> None:
    """The run has ended: its own copies go, and it holds nothing in the cache any more."""
    folder = rooms.folder(record.run_id)
    for use in uses_of(record):
        rooms.stager.prefetched.pop((record.run_id, use.name), None)
    leave_spots(rooms, record)
    shutil.rmtree(folder.data, ignore_errors=True)
    folder.data_record.unlink(missing_ok=True)


def _path_of(
    rooms: Rooms, record: RunRecord, use: DataUse, placement: Placement, tell: Say, canceled: threading.Event
) -> str:
    folder, compute = rooms.folder(record.run_id), rooms.target(record).compute
    if use.mode == UPLOAD:
        place = _absolute(folder, use)
        (place.parent if place.suffix and use.path_on_compute else place).mkdir(parents=True, exist_ok=True)
        return str(place)
    wants_copy = _wants_copy(use)
    if isinstance(compute, SshCompute) and not use.path_on_compute:
        tree, _ = _gathered(rooms, record, use, tell, canceled, cache_local_files=False)
        private = use.name if wants_copy else ""
        gift = Gift(use.label, tree.leaves, tree.contents, private)
        compute.give(record.run_id, gift, placement.nodes or (0,), tell, canceled)
        top = f"{folder.root}/data/{private}" if private else f"{HOST_FOLDER}/data/trees/{tree.key}"
        return f"{top}/{tree.leaves[0].path}" if tree.is_single_file else top
    in_place = rooms.stager.local_path(use)
    if not wants_copy:
        if in_place is not None:
            return str(in_place)
        tree, found = _gathered(rooms, record, use, tell, canceled)
        path = rooms.stager.materialize(tree, found, canceled)
        return str(path)
    target = _absolute(folder, use) if _is_in_work(use) else folder.data / use.name
    return _copied(rooms, record, use, target, rooms.stager.is_local(use), tell, canceled)


def _comes_through_the_cache(rooms: Rooms, use: DataUse) -> bool:
    return rooms.stager.local_path(use) is None and not (_wants_copy(use) and rooms.stager.is_local(use))


def _wants_copy(use: DataUse) -> bool:
    return use.mode == DOWNLOAD or (use.mode != UPLOAD and _is_in_work(use))


def _copied(
    rooms: Rooms,
    record: RunRecord,
    use: DataUse,
    target: Path,
    is_near: bool,
    tell: Say,
    canceled: threading.Event,
) -> str:
    """A copy of the run's own, which its script may write to."""
    if is_near:
        found = rooms.stager.list_files(use, tell, canceled)
        tell(f"copying data {use.label}: {len(found.files):,} files, {found.size / 1e6:,.0f} MB")
        target.mkdir(parents=True, exist_ok=True)
        for datastore in {item.datastore for item in found.files}:
            place = NamedStore(datastore, rooms.stager.open(datastore), rooms.stager.stores.digests)
            files = [(item.stored, target / item.path) for item in found.files if item.datastore == datastore]
            progress = Progress(files=len(files), bytes=found.size)
            progress.on_change = _telling(f"copying data {use.label}", progress, tell)
            copy.download(place, files, overwrite=True, progress=progress, canceled=canceled)
    else:
        tree, found = _gathered(rooms, record, use, tell, canceled)
        planted = rooms.stager.materialize(tree, found, canceled)
        root = planted.parents[len(Path(tree.leaves[0].path).parts) - 1] if tree.is_single_file else planted
        if _is_in_work(use) and target.exists():  # a folder of the code: its files stay, unless they are the same
            for leaf in tree.leaves:
                (target / leaf.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / leaf.path, target / leaf.path)
        else:
            copy_tree(root, tree.leaves, target)
    return str(target / found.files[0].path) if found.is_single_file else str(target)


def _gathered(
    rooms: Rooms,
    record: RunRecord,
    use: DataUse,
    tell: Say,
    canceled: threading.Event,
    *,
    cache_local_files: bool = True,
    report_cached: bool = False,
) -> tuple[Tree, InputFiles]:
    """What was gathered when the run was prepared is not asked for again: it may have been a long list."""
    ready = rooms.stager.prefetched.pop((record.run_id, use.name), None)
    if ready is not None:
        return ready
    found = rooms.stager.list_files(use, tell, canceled)
    tree = rooms.stager.fetch(
        use.label, found, tell, canceled, cache_local_files=cache_local_files, report_cached=report_cached
    )
    record_trees(rooms.folder(record.run_id), [tree.key])
    return tree, found


def _sent(rooms: Rooms, use: DataUse, source: Path, tell: Say) -> list[str]:
    below = clean_path(use.path)
    warnings: list[str] = []
    if source.is_file():
        files = [Upload(source, below or source.name, source.stat().st_size)]
    elif source.is_dir():
        files, warnings = files_to_upload(source, below)
    else:
        return [f"the script wrote nothing to {use.path_on_compute or '$AZUREML_DATAREFERENCE_' + use.name}"]
    place = NamedStore(use.datastore, rooms.stager.open(use.datastore), rooms.stager.stores.digests)
    progress = Progress(files=len(files), bytes=sum(file.size for file in files))
    progress.on_change = _telling(f"uploading data {use.label}", progress, tell)
    warnings += copy.upload(place, files, overwrite=use.overwrite, progress=progress, canceled=threading.Event())
    where = join(use.datastore, below)
    tell(f"data {use.label}: {progress.files_done - progress.files_skipped:,} of {len(files):,} files are in {where}")
    return warnings


def _upload_place(use: DataUse) -> str:
    return use.path_on_compute or f"{_UPLOADS}/{use.name}"


def _is_absolute(use: DataUse) -> bool:
    return bool(use.path_on_compute) and Path(str(use.path_on_compute)).is_absolute()


def _is_in_work(use: DataUse) -> bool:
    return bool(use.path_on_compute) and not _is_absolute(use)


def _is_linked(use: DataUse) -> bool:
    return use.mode != UPLOAD and _is_absolute(use)


def _spot(rooms: Rooms, use: DataUse) -> MountLink:
    return MountLink(HomeFolder(rooms.home).data / "spots", Path(os.path.normpath(str(use.path_on_compute))), use.label)


def _is_over(rooms: Rooms, run_id: str) -> bool:
    try:
        return rooms.runs.load(run_id).life.state.is_terminal
    except RunNotFound:
        return True


def _absolute(folder: RunFolder, use: DataUse) -> Path:
    return folder.work / _upload_place(use)  # an absolute path stays what it is


def _telling(what: str, progress: Progress, tell: Say) -> Callable[[], None]:
    told_at = clock.monotonic()

    def changed() -> None:
        nonlocal told_at
        if clock.monotonic() - told_at > _SAY_EVERY_S:
            told_at = clock.monotonic()
            waiting = f"; {progress.activity}" if progress.activity else ""
            tell(f"{what} {progress.bytes_done / 1e6:,.0f}/{progress.bytes / 1e6:,.0f} MB{waiting}")

    return changed


@contextmanager
def _told(folder: RunFolder, say: Say) -> Iterator[Say]:
    """Every step is in the run's own log, with its time."""
    began, lock = clock.monotonic(), threading.Lock()

    def tell(text: str) -> None:
        with lock:  # opened for each line: most runs have nothing to say here, and need no empty log
            folder.logs.mkdir(parents=True, exist_ok=True)
            with open(folder.data_log, "a", encoding="utf-8", errors="replace") as log:
                log.write(f"[{clock.monotonic() - began:7.2f} s] {text}\n")
        say(text)

    try:
        yield tell
    except RunyardException as error:
        tell(error.message)
        raise
