"""Run: one run, looked at from outside or from inside its own script.

Every training script imports this, and most of them only log: what all the rest needs is imported when it is done.
"""

from __future__ import annotations

import os

from runyard.errors import RunEnvironmentException, RunNotFound, UserErrorException
from runyard.sdk.core.labels import as_labels
from runyard.sdk.run.legacy import RunOfV1
from runyard.sdk.run.metric_logging import MetricLogging

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Optional, Union

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.model.model import Model
    from runyard.sdk.run.files import Uploaded
    from runyard.sdk.run.offline_run import OfflineRun

_contexts: dict[tuple[int, str], Run] = {}


class Run(MetricLogging, RunOfV1):
    """``Run(experiment, run_id)`` opens one again; ``Run.get_context()`` is the run of this very script."""

    def __init__(
        self, experiment: Experiment, run_id: str, outputs: Any = None, *, _view: dict[str, Any] | None = None, **_: Any
    ) -> None:
        from runyard.spec.names import RUN_ID

        if not isinstance(run_id, str) or not run_id:
            raise UserErrorException(f"a run id is a text, not {run_id!r}")
        if not RUN_ID.fullmatch(run_id):
            raise RunNotFound(f"no run {run_id!r} in this yard", hint="no run can have that id")
        self.experiment = experiment
        self.id = run_id
        self._inside = False
        self._interactive: Any = None  # the hold of the process that opened the run
        self._connection: Connection = experiment.workspace.connection
        self._view = _view if _view is not None else self._connection.get(f"/api/runs/{run_id}")
        super().__init__(self._view["folder"], rank=0)
        if "RUNYARD_YARD_ELSEWHERE" in os.environ:
            self._keep_no_journal()

    @classmethod
    def get_context(
        cls, allow_offline: bool = True, used_for_context_manager: bool = False, **_: Any
    ) -> Run | OfflineRun:
        """The run that this script is. Outside of one: an offline run that prints what is logged."""
        run_id = os.environ.get("RUNYARD_RUN_ID")
        if not run_id:
            if not allow_offline:
                raise RunEnvironmentException()
            from runyard.sdk.run.offline_run import OfflineRun

            return OfflineRun()
        key = (os.getpid(), run_id)
        if key not in _contexts:
            from runyard.sdk.run.current_run import RunOfThisScript

            _contexts[key] = RunOfThisScript(run_id)
        return _contexts[key]

    @classmethod
    def get_submitted_run(cls, **_: Any) -> Run | OfflineRun:
        """The name of :meth:`get_context` in the SDK's first releases; it never was offline."""
        return cls.get_context(allow_offline=False)

    # what it is

    @property
    def type(self) -> Optional[str]:
        kind: Optional[str] = self._view["type"]
        return kind

    @property
    def name(self) -> str:
        return self._view["name"] or ""

    @property
    def number(self) -> int:
        number: int = self._view["number"]
        return number

    @property
    def status(self) -> str:
        """As last seen; :meth:`get_status` asks again."""
        status: str = self._view["status"]
        return status

    @property
    def tags(self) -> dict[str, str | None]:
        return dict(self._view["tags"])

    @property
    def properties(self) -> dict[str, str | None]:
        return dict(self._view["properties"])

    @property
    def parent(self) -> Optional[Run]:
        parent_id = self._view["parent_id"]
        from runyard.sdk.run.listing import opened

        return opened(self.experiment, self._connection.get(f"/api/runs/{parent_id}")) if parent_id else None

    def get_status(self) -> str:
        from runyard.spec.names import ENDED

        if self.status not in ENDED:
            self._refresh()
        return self.status

    def get_details(self) -> dict[str, Any]:
        from runyard.sdk.run import details as run_details

        return run_details.details(self._refresh(), self._file_names(), self.experiment.workspace)

    def get_details_with_logs(self) -> dict[str, Any]:
        from runyard.sdk.run import files as run_files

        details = self.get_details()
        details["logFiles"] = {
            name: run_files.read(self._connection, self.id, name).decode(errors="replace")
            for name in details["logFiles"]
        }
        return details

    def get_portal_url(self) -> str:
        from pathlib import Path

        return Path(self._view["folder"]).as_uri()

    # waiting and ending

    def wait_for_completion(
        self, show_output: bool = False, wait_post_processing: bool = False, raise_on_error: bool = True
    ) -> dict[str, Any]:
        """The details of the ended run; a failed one raises ActivityFailedException, a canceled one does not."""
        from runyard.sdk.run import details as run_details
        from runyard.sdk.run import waiting

        self._view, files = waiting.wait(self._connection, self._view, show_output)
        files = self._file_names() if files is None else files
        found = run_details.details(self._view, files, self.experiment.workspace)
        return waiting.verdict(found, raise_on_error)

    def cancel(self) -> None:
        self._view = self._connection.post(f"/api/runs/{self.id}/cancel")
        self._let_go(upload=True)

    def complete(self, _set_status: bool = True) -> None:
        """Ends an interactive run; in a submitted script it only makes sure that everything is written."""
        self.flush()
        if self._interactive is not None:
            self._interactive.upload_outputs()
        if not self._inside:
            self._view = self._connection.post(f"/api/runs/{self.id}/complete")
            self._let_go(upload=False)

    def fail(self, error_details: Any = None, error_code: str | None = None, _set_status: bool = True) -> None:
        self.flush()
        body = {"message": "" if error_details is None else str(error_details), "code": error_code or ""}
        if self._interactive is not None:
            self._interactive.upload_outputs()
        self._view = self._connection.post(f"/api/runs/{self.id}/fail", body)
        self._let_go(upload=False)

    def flush(self, timeout_seconds: float = 300) -> None:
        """Nothing is held back in this process, so there is nothing to wait for."""

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.complete()
        else:
            self.fail(error_details=f"{kind.__name__}: {value}")

    # labels

    def tag(self, key: str, value: Any = None) -> None:
        self.set_tags({key: value})

    def set_tags(self, tags: dict[str, Any]) -> None:
        self._view = self._connection.patch(f"/api/runs/{self.id}/tags", {"set": as_labels(tags, "tags"), "remove": []})

    def remove_tags(self, tags: list[str]) -> None:
        self._view = self._connection.patch(f"/api/runs/{self.id}/tags", {"set": {}, "remove": list(tags)})

    def get_tags(self) -> dict[str, str | None]:
        return dict(self._refresh()["tags"])

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Written once: another value for the same key is refused."""
        body = {"set": as_labels(properties, "properties"), "remove": []}
        self._view = self._connection.patch(f"/api/runs/{self.id}/properties", body)

    def get_properties(self) -> dict[str, str | None]:
        return dict(self._refresh()["properties"])

    # metrics (logging is in MetricLogging)

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: str | None = None, populate: bool = False
    ) -> dict[str, Any]:
        if run_type is not None:
            from runyard.sdk.azureml import no_effect

            no_effect.told("Run.get_metrics", "run_type", run_type, "all runs below have their metrics told")
        query = {"run_ids": [self.id], "name": name, "recursive": recursive}
        found: dict[str, dict[str, Any]] = self._connection.post("/api/metrics", query)
        return found if recursive else found.get(self.id, {})

    # files

    def get_file_names(self) -> list[str]:
        return self._file_names()

    def download_file(self, name: str, output_file_path: str | None = None, _validate_checksum: bool = False) -> None:
        from runyard.sdk.run import files as run_files

        run_files.download(self._connection, self.id, name, output_file_path)

    def download_files(
        self,
        prefix: str | None = None,
        output_directory: str | None = None,
        output_paths: list[str] | None = None,
        batch_size: int = 100,
        append_prefix: bool = True,
        timeout_seconds: float | None = None,
    ) -> None:
        from runyard.sdk.run import files as run_files

        run_files.download_many(self._connection, self.id, prefix, output_directory, output_paths, append_prefix)

    def upload_file(
        self, name: str, path_or_stream: Union[str, Path, BinaryIO], datastore_name: str | None = None
    ) -> Uploaded:
        from runyard.sdk.azureml import no_effect
        from runyard.sdk.run import files as run_files

        no_effect.told("Run.upload_file", "datastore_name", datastore_name, "a run's files are kept by the yard")
        return run_files.upload(self._connection, self.id, name, path_or_stream)

    def upload_files(
        self,
        names: list[str],
        paths: list[str],
        return_artifacts: bool = False,
        timeout_seconds: float | None = None,
        datastore_name: str | None = None,
    ) -> None:
        if len(names) != len(paths):
            raise UserErrorException(f"{len(names)} names were given for {len(paths)} paths")
        for name, path in zip(names, paths):
            self.upload_file(name, path, datastore_name)

    def upload_folder(self, name: str, path: str, datastore_name: str | None = None) -> None:
        from runyard.sdk.azureml import no_effect
        from runyard.sdk.run import files as run_files

        no_effect.told("Run.upload_folder", "datastore_name", datastore_name, "a run's files are kept by the yard")
        run_files.upload_folder(self._connection, self.id, name, path)

    def register_model(
        self,
        model_name: str,
        model_path: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        description: str | None = None,
        datasets: list[Any] | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
        **kwargs: Any,
    ) -> Model:
        """A file or a folder of this run becomes the next version of a model; the path of one that is omitted is
        its name."""
        from runyard.sdk.run import models

        about = (tags, properties, description, datasets, model_framework, model_framework_version)
        samples = (sample_input_dataset, sample_output_dataset, resource_configuration)
        return models.register(self, model_name, model_path, about, samples, kwargs)

    def restore_snapshot(self, snapshot_id: str | None = None, path: str | None = None) -> str:
        """Writes ``<id>.zip`` into ``path`` (made if needed) and returns where it is."""
        wanted = snapshot_id or self._refresh()["snapshot_id"]
        if not wanted:
            raise UserErrorException(f"run {self.id} has no snapshot", hint="run.take_snapshot(folder) takes one")
        from runyard.sdk.run import files as run_files

        return run_files.restore_snapshot(self._connection, wanted, path)

    def take_snapshot(self, file_or_folder_path: str) -> str:
        """The code of an interactive run. One that has a snapshot keeps it: the code as it was at the start."""
        existing = self._refresh()["snapshot_id"]
        if existing:
            return str(existing)
        from pathlib import Path

        from runyard.sdk.training.submit import take_snapshot

        snapshot_id = take_snapshot(self._connection, Path(file_or_folder_path))
        self._view = self._connection.post(f"/api/runs/{self.id}/snapshot", {"snapshot_id": snapshot_id})
        return snapshot_id

    # children

    def child_run(self, name: str | None = None, run_id: str | None = None, outputs: str | None = None) -> Run:
        from runyard.sdk.azureml import no_effect
        from runyard.sdk.training.submit import begin_run

        no_effect.told("Run.child_run", "run_id", run_id, "the yard gives a child its id")
        return begin_run(self.experiment, name=name, outputs=outputs, parent_id=self.id)

    def create_children(
        self, count: int | None = None, tag_key: str | None = None, tag_values: list[Any] | None = None
    ) -> list[Run]:
        """Several started runs at once: by count, or one for each value of a tag."""
        from runyard.sdk.training.submit import begin_run

        if (count is None) == (tag_key is None) or (tag_key is None) != (tag_values is None):
            raise UserErrorException("create_children takes either count, or tag_key with tag_values")
        if count is not None and (not isinstance(count, int) or not 1 <= count <= 100):
            raise UserErrorException(f"create_children makes 1 to 100 runs, not {count!r}")
        tags: list[dict[str, Any] | None] = [None] * (count or 0)
        if tag_key is not None:
            tags = [{tag_key: value} for value in tag_values or []]
        return [begin_run(self.experiment, parent_id=self.id, tags=tag) for tag in tags]

    def get_children(
        self,
        recursive: bool = False,
        tags: Any = None,
        properties: Any = None,
        type: str | None = None,
        status: str | None = None,
        _rehydrate_runs: bool = True,
    ) -> Iterator[Run]:
        from runyard.sdk.run.listing import list_runs

        children = list_runs(
            self.experiment.workspace, parent=self.id, tags=tags, properties=properties, type=type, status=status
        )
        for child in children:
            yield child
            if recursive:
                yield from child.get_children(True, tags, properties, type, status)

    # how it shows itself

    def __repr__(self) -> str:
        return (
            f"Run(Experiment: {self.experiment.name},\nId: {self.id},\nType: {self.type},\nStatus: {self.get_status()})"
        )

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import run_html

        return run_html(self._refresh(), self._connection.get(f"/api/runs/{self.id}/summary")["metrics"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def _refresh(self) -> dict[str, Any]:
        fresh: dict[str, Any] = self._connection.get(f"/api/runs/{self.id}")
        self._view = fresh
        return fresh

    def _file_names(self) -> list[str]:
        return [file["name"] for file in self._connection.get(f"/api/runs/{self.id}/files")]

    def _keep_image(self, name: str, data: Path | BinaryIO) -> None:
        self.upload_file(name, data)

    def _hold(self, outputs: Path | None) -> None:
        from pathlib import Path

        from runyard.sdk.run.interactive import Hold

        self._interactive = Hold(self, Path(self._view["folder"]), outputs)

    def _let_go(self, *, upload: bool) -> None:
        if self._interactive is not None:
            if upload:
                self._interactive.upload_outputs()
            self._interactive.release()
            self._interactive = None
