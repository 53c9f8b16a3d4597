"""The data of one run: fetched before it starts, staged for its processes, and its uploads sent after it has ended."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard import clock
from runyard.compute.base import DataUpload, ProgressCallback, RemoteData
from runyard.compute.scheduling.queue import Placement
from runyard.data import copy
from runyard.data.base import clean_path, disk_error, join
from runyard.data.cache import copy_tree, record_trees
from runyard.data.copy import NamedStore, Progress, Upload
from runyard.data.mount_links import MountLink
from runyard.data.staging import InputFiles, Stager, Tree
from runyard.data.transfer_jobs import files_to_upload
from runyard.environments.container import ContainerPrepared
from runyard.environments.prepared import Prepared
from runyard.errors import RunNotFound, RunyardException, UserErrorException
from runyard.lifecycle.warning import RunWarning, incomplete, notes
from runyard.orchestrator.components import Components
from runyard.spec.data import DOWNLOAD, MODES, UPLOAD, DataUse
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.store.database import is_disk_full
from runyard.store.runs import RunRecord

_UPLOADS = ".data"  # in the working copy, which targets copy back
_REPORT_INTERVAL_S = 1.0


@dataclass(frozen=True)
class DataPaths:
    """The paths at which processes find the data of a run; `Compute.start` translates those for other machines."""

    paths: dict[str, str] = field(default_factory=dict)  # by the name of the use
    shared: tuple[str, ...] = ()  # paths that other runs read, too: the script must not write there
    writable: tuple[str, ...] = ()  # paths outside of the run's folder to which the script may write


def data_uses(record: RunRecord) -> tuple[DataUse, ...]:
    uses = record.spec.get("data") if record.spec else None  # without parsing the spec: most runs have no data
    return tuple(from_json(DataUse, use) for use in uses) if uses else ()


def check(components: Components, spec: RunSpec) -> None:
    """Refuse what is wrong with the data of a run, as far as it can be checked without a remote request."""
    if not spec.data:
        return
    is_remote = components.targets.get(spec.target).compute.remote_data is not None
    names: set[str] = set()
    links: set[Path] = set()
    for use in spec.data:
        if use.mode not in MODES:
            raise UserErrorException(
                f"data {use.label!r}: unknown mode {use.mode!r}", hint=f"modes: {', '.join(MODES)}"
            )
        if use.name in names:
            raise UserErrorException(f"two uses of data are named {use.name!r}", hint="use different names")
        names.add(use.name)
        path = Path(use.path_on_compute or "")
        if ".." in path.parts or (is_remote and path.is_absolute()):
            raise UserErrorException(
                f"data {use.label!r}: path_on_compute {str(path)!r} is not below the run's working directory",
                hint="use a relative path such as 'data'; the script finds it in $AZUREML_DATAREFERENCE_…",
            )
        if _is_linked(use):
            link = _mount_link(components, use)
            if link.path in links:
                raise UserErrorException(f"two uses of data have the path {link.path}", hint="use different paths")
            links.add(link.path)
            link.check()
        if use.dataset is None:
            _check_datastore(components.stager, use)


def _check_datastore(stager: Stager, use: DataUse) -> None:
    stager.stores.record(use.datastore)
    clean_path(use.path, f"data {use.name!r}: path")
    if use.mode == UPLOAD:
        stager.stores.open_to_write(use.datastore)
    else:
        stager.check_exists(use)


def prefetch(components: Components, record: RunRecord, report: ProgressCallback, canceled: threading.Event) -> None:
    """Before the run is placed: fetch remote data into the yard's cache."""
    inputs = [use for use in data_uses(record) if use.mode != UPLOAD]
    if not inputs:
        return
    stager, is_remote = components.stager, components.target(record).compute.remote_data is not None
    try:
        with _logged(components.folder(record.run_id), report) as log:
            staging = _Staging(components, record, log, canceled)
            for use in inputs:
                is_cached = stager.local_path(use) is None and not (_needs_copy(use) and stager.is_local(use))
                if is_remote or is_cached:
                    files = staging.fetch(use, cache_local_files=not is_remote, report_cached=True)
                    stager.prefetched[record.run_id, use.name] = files
    finally:
        # a run canceled during the fetch was cleaned up before this data was recorded: it would stay in use
        if components.runs.load(record.run_id).life.state.is_terminal:
            discard(components, record)


def stage(
    components: Components, record: RunRecord, placement: Placement, report: ProgressCallback, canceled: threading.Event
) -> DataPaths:
    """After the working copy is written: make every use available, on the yard's machine or on the nodes."""
    if not data_uses(record):
        return DataPaths()
    paths: dict[str, str] = {}
    shared: list[str] = []
    writable: list[str] = []
    with _logged(components.folder(record.run_id), report) as log:
        staging = _Staging(components, record, log, canceled)
        for use in data_uses(record):
            path = staged = staging.stage(use, placement)
            if _is_linked(use):
                link = _mount_link(components, use)
                path = str(link.create(Path(staged), record.run_id, lambda run_id: _has_ended(components, run_id)))
            paths[use.name] = path
            if use.mode != UPLOAD and not _needs_copy(use):
                shared += [staged, path]
            elif not Path(path).is_relative_to(components.folder(record.run_id).root):
                writable.append(path)
    return DataPaths(paths, tuple(dict.fromkeys(shared)), tuple(dict.fromkeys(writable)))


def dry_run_paths(record: RunRecord) -> DataPaths:
    return DataPaths({use.name: f"<data {use.name}>" for use in data_uses(record)})


def variables(record: RunRecord, data_paths: DataPaths) -> dict[str, str]:
    return {name: data_paths.paths[use.name] for use in data_uses(record) for name in use.variables}


def resolve_arguments(spec: RunSpec, record: RunRecord, data_paths: DataPaths) -> RunSpec:
    """The specification with paths instead of the placeholders of datasets; variables are expanded on the node."""
    replacements = {
        # scripts of the SDK v1 that expect the dataset itself look it up by its id
        use.placeholder: use.dataset.id if use.dataset.direct else data_paths.paths[use.name]
        for use in data_uses(record)
        if use.dataset is not None
    }
    return replace(spec, arguments=tuple(replacements.get(argument, argument) for argument in spec.arguments))


def mount_in_container(prepared: Prepared, data_paths: DataPaths) -> Prepared:
    """A container sees the run's folder; other paths are mounted into it."""
    if not isinstance(prepared, ContainerPrepared):
        return prepared
    mounts = [f"{path}:{path}:ro" for path in data_paths.shared] + [f"{path}:{path}" for path in data_paths.writable]
    volumes = [argument for mount in mounts for argument in ("--volume", mount)]
    return replace(prepared, argv_prefix=(*prepared.argv_prefix, *volumes))


def upload_folders(record: RunRecord) -> list[str]:
    """The paths in the working copy whose files are uploaded at the end."""
    return [_path_in_work(use) for use in data_uses(record) if use.mode == UPLOAD and not _is_absolute(use)]


def paths_in_working_copy(record: RunRecord) -> list[str]:
    """The paths in the working copy to which data is written."""
    return [_path_in_work(use) for use in data_uses(record) if not _is_absolute(use)]


def upload_outputs(components: Components, record: RunRecord, report: ProgressCallback) -> list[RunWarning]:
    """Upload what the script wrote, also if it failed. Each file appears complete or not at all."""
    folder = components.folder(record.run_id)
    warnings: list[RunWarning] = []
    for use in data_uses(record):
        if use.mode != UPLOAD:
            continue
        source = folder.work / _path_in_work(use)
        try:
            with _logged(folder, report) as log:
                warnings += notes(f"data {use.label}: {text}" for text in _upload(components.stager, use, source, log))
        except (RunyardException, OSError) as error:  # the other outputs of the run are stored nevertheless
            if is_disk_full(error):
                raise  # tried again until there is space
            message = disk_error(error, source).message if isinstance(error, OSError) else error.message
            warnings.append(incomplete(f"data {use.label} in datastore {use.datastore!r} is incomplete: {message}"))
    return warnings


def release_links(components: Components, record: RunRecord) -> None:
    """Remove the links outside of the run's folder that led to its data. May be repeated."""
    for use in data_uses(record):
        if _is_linked(use):
            _mount_link(components, use).release(record.run_id)


def discard(components: Components, record: RunRecord) -> None:
    """After the end: delete the run's private copies, and release what it holds in the cache."""
    folder = components.folder(record.run_id)
    for use in data_uses(record):
        components.stager.prefetched.pop((record.run_id, use.name), None)
    release_links(components, record)
    shutil.rmtree(folder.data, ignore_errors=True)
    with suppress(OSError):  # its script may have put a folder in its place
        folder.data_record.unlink()


@dataclass(frozen=True)
class _Staging:
    """Makes the data of one run available."""

    components: Components
    record: RunRecord
    report: ProgressCallback
    canceled: threading.Event

    def stage(self, use: DataUse, placement: Placement) -> str:
        """Make one use available and return its path."""
        folder, stager = self.components.folder(self.record.run_id), self.components.stager
        if use.mode == UPLOAD:
            path = folder.work / _path_in_work(use)
            (path.parent if path.suffix and use.path_on_compute else path).mkdir(parents=True, exist_ok=True)
            return str(path)
        needs_copy = _needs_copy(use)
        remote_data = self.components.target(self.record).compute.remote_data
        if remote_data is not None and not use.path_on_compute:
            return self._upload_to_nodes(remote_data, use, placement, needs_copy)
        if not needs_copy:
            local_path = stager.local_path(use)
            return str(local_path or stager.materialize(*self.fetch(use), self.canceled))
        target = folder.work / _path_in_work(use) if _is_in_work(use) else folder.data / use.name
        inputs = self._copy_local(use, target) if stager.is_local(use) else self._copy_cached(use, target)
        return str(target / inputs.files[0].path) if inputs.is_single_file else str(target)

    def fetch(
        self, use: DataUse, *, cache_local_files: bool = True, report_cached: bool = False
    ) -> tuple[Tree, InputFiles]:
        """The files of a use, in the cache. What was prefetched is not listed again: the list may be long."""
        stager, run_id = self.components.stager, self.record.run_id
        prefetched = stager.prefetched.pop((run_id, use.name), None)
        if prefetched is not None:
            return prefetched
        inputs = stager.list_files(use, self.report, self.canceled)
        options = {"cache_local_files": cache_local_files, "report_cached": report_cached}
        tree = stager.fetch(use.label, inputs, self.report, self.canceled, **options)
        record_trees(self.components.folder(run_id), [tree.key])
        return tree, inputs

    def _upload_to_nodes(self, remote_data: RemoteData, use: DataUse, placement: Placement, private: bool) -> str:
        tree, _ = self.fetch(use, cache_local_files=False)
        upload = DataUpload(use.label, tree.key, tree.leaves, tree.contents, use.name if private else "")
        run_id, nodes = self.record.run_id, placement.nodes or (0,)
        folder = str(self.components.folder(run_id).root)
        top = remote_data.upload(run_id, folder, upload, nodes, report=self.report, canceled=self.canceled)
        return f"{top}/{tree.leaves[0].path}" if tree.is_single_file else top

    def _copy_local(self, use: DataUse, target: Path) -> InputFiles:
        """Copy files of the yard's machine, so that the script may change them."""
        stager = self.components.stager
        inputs = stager.list_files(use, self.report, self.canceled)
        self.report(f"copying data {use.label}: {len(inputs.files):,} files, {inputs.size / 1e6:,.0f} MB")
        target.mkdir(parents=True, exist_ok=True)
        for datastore in {file.datastore for file in inputs.files}:
            store = NamedStore(datastore, stager.open(datastore), stager.stores.digests)
            files = [(file.stored, target / file.path) for file in inputs.files if file.datastore == datastore]
            progress = Progress(files=len(files), bytes=inputs.size)
            progress.on_change = _progress_reporter(f"copying data {use.label}", progress, self.report)
            copy.download(store, files, overwrite=True, progress=progress, canceled=self.canceled)
        return inputs

    def _copy_cached(self, use: DataUse, target: Path) -> InputFiles:
        """Copy files of the cache, so that the script may change them."""
        tree, inputs = self.fetch(use)
        cached = self.components.stager.materialize(tree, inputs, self.canceled)
        root = cached.parents[len(Path(tree.leaves[0].path).parts) - 1] if tree.is_single_file else cached
        if _is_in_work(use) and target.exists():  # a folder of the code: its other files are kept
            for leaf in tree.leaves:
                (target / leaf.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / leaf.path, target / leaf.path)
        else:
            copy_tree(root, tree.leaves, target)
        return inputs


def _upload(stager: Stager, use: DataUse, source: Path, report: ProgressCallback) -> list[str]:
    target = clean_path(use.path)
    warnings: list[str] = []
    if source.is_file():
        files = [Upload(source, target or source.name, source.stat().st_size)]
    elif source.is_dir():
        files, warnings = files_to_upload(source, target)
    else:
        return [f"the script wrote nothing to {use.path_on_compute or '$AZUREML_DATAREFERENCE_' + use.name}"]
    store = NamedStore(use.datastore, stager.open(use.datastore), stager.stores.digests)
    progress = Progress(files=len(files), bytes=sum(file.size for file in files))
    progress.on_change = _progress_reporter(f"uploading data {use.label}", progress, report)
    warnings += copy.upload(store, files, overwrite=use.overwrite, progress=progress, canceled=threading.Event())
    uploaded = progress.files_done - progress.files_skipped
    report(f"data {use.label}: {uploaded:,} of {len(files):,} files uploaded to {join(use.datastore, target)}")
    return warnings


def _needs_copy(use: DataUse) -> bool:
    return use.mode == DOWNLOAD or (use.mode != UPLOAD and _is_in_work(use))


def _path_in_work(use: DataUse) -> str:
    """Relative to the working copy, unless path_on_compute is absolute."""
    return use.path_on_compute or f"{_UPLOADS}/{use.name}"


def _is_absolute(use: DataUse) -> bool:
    return bool(use.path_on_compute) and Path(str(use.path_on_compute)).is_absolute()


def _is_in_work(use: DataUse) -> bool:
    return bool(use.path_on_compute) and not _is_absolute(use)


def _is_linked(use: DataUse) -> bool:
    return use.mode != UPLOAD and _is_absolute(use)


def _mount_link(components: Components, use: DataUse) -> MountLink:
    path = Path(os.path.normpath(str(use.path_on_compute)))
    return MountLink(HomeFolder(components.home).data / "spots", path, use.label)


def _has_ended(components: Components, run_id: str) -> bool:
    try:
        return components.runs.load(run_id).life.state.is_terminal
    except RunNotFound:
        return True


def _progress_reporter(action: str, progress: Progress, report: ProgressCallback) -> Callable[[], None]:
    reported_at = clock.monotonic()

    def on_change() -> None:
        nonlocal reported_at
        if clock.monotonic() - reported_at > _REPORT_INTERVAL_S:
            reported_at = clock.monotonic()
            activity = f"; {progress.activity}" if progress.activity else ""
            report(f"{action} {progress.bytes_done / 1e6:,.0f}/{progress.bytes / 1e6:,.0f} MB{activity}")

    return on_change


@contextmanager
def _logged(folder: RunFolder, report: ProgressCallback) -> Iterator[ProgressCallback]:
    """Yield a callback that also writes each message to the run's data log."""
    started, lock = clock.monotonic(), threading.Lock()

    def report_and_log(text: str) -> None:
        with lock:  # opened for each line: most runs write nothing here, and get no empty log
            folder.logs.mkdir(parents=True, exist_ok=True)
            with open(folder.data_log, "a", encoding="utf-8", errors="replace") as log:
                log.write(f"[{clock.monotonic() - started:7.2f} s] {text}\n")
        report(text)

    try:
        yield report_and_log
    except RunyardException as error:
        report_and_log(error.message)
        raise
