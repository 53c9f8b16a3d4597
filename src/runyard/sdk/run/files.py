"""Files of a run: download, upload, logs, the snapshot of its code, and registering them as a model."""

from __future__ import annotations

import os

from runyard.errors import UserErrorException
from runyard.sdk.run.base import RunBase

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, BinaryIO, Optional, Union

    from runyard.sdk.data.reference import DataPath
    from runyard.sdk.model.model import Model


class RunFiles(RunBase):
    def get_file_names(self) -> list[str]:
        """Return the names of the run's files, such as ``outputs/model.pt``."""
        return [file["name"] for file in self._connection.get(f"/api/runs/{self.id}/files")]

    def download_file(self, name: str, output_file_path: str | None = None, _validate_checksum: bool = False) -> None:
        """Download one file.

        Args:
            name: Name of the file in the run.
            output_file_path: A path, or an existing folder. The default is the file's own name in the current folder.

        Raises:
            UserErrorException: The run has no such file, or the folder does not exist.
        """
        from pathlib import Path

        target = Path(output_file_path) if output_file_path else Path(Path(name).name)
        if target.is_dir() or str(output_file_path or "").endswith("/"):
            target = target / Path(name).name
        if not target.parent.is_dir():
            raise UserErrorException(
                f"the folder {str(target.parent)!r} for {name!r} does not exist", hint="create it first"
            )
        self._download(name, target)

    def download_files(
        self,
        prefix: str | None = None,
        output_directory: str | None = None,
        output_paths: list[str] | None = None,
        batch_size: int = 100,
        append_prefix: bool = True,
        timeout_seconds: float | None = None,
    ) -> None:
        """Download several files.

        Args:
            prefix: Folder or beginning of the names to download; the default is all files.
            output_directory: Folder to write to; created if needed. The default is the current folder.
            output_paths: One path per file, relative to ``output_directory``.
            batch_size: Has no effect.
            append_prefix: False removes ``prefix`` from the local paths.
            timeout_seconds: Has no effect.

        Raises:
            UserErrorException: No file matches, or the number of ``output_paths`` differs from that of the files.
        """
        from pathlib import Path

        names = self.get_file_names()
        matches = [name for name in names if not prefix or name == prefix or name.startswith(prefix.rstrip("/") + "/")]
        if prefix and not matches:
            matches = [name for name in names if name.startswith(prefix)]
        if prefix and not matches:
            folders = ", ".join(sorted({name.split("/")[0] for name in names})) or "none"
            raise UserErrorException(
                f"run {self.id} has no files under {prefix!r}", hint=f"it has files under: {folders}"
            )
        if output_paths is not None and len(output_paths) != len(matches):
            raise UserErrorException(f"got {len(output_paths)} output_paths for {len(matches)} files")
        base = Path(output_directory or ".")
        for index, name in enumerate(matches):
            if output_paths is not None:
                target = base / output_paths[index]
            elif prefix and not append_prefix:
                target = base / (name[len(prefix) :].lstrip("/") or Path(name).name)
            else:
                target = base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._download(name, target)

    def upload_file(
        self, name: str, path_or_stream: Union[str, Path, BinaryIO], datastore_name: str | None = None
    ) -> UploadedFile:
        """Add a file to the run.

        Args:
            name: Name that the file gets in the run.
            path_or_stream: A path, or an open binary file.
            datastore_name: Has no effect.

        Returns:
            The stored file; its ``serialize()`` returns the dict that scripts for the SDK v1 print.

        Raises:
            UserErrorException: The name is empty, or the file does not exist.
        """
        from runyard.sdk.azureml import no_effect

        no_effect.warn_ignored("Run.upload_file", "datastore_name", datastore_name, "the yard stores a run's files")
        if not name or not isinstance(name, str):
            raise UserErrorException(f"an uploaded file needs a name, got {name!r}")
        address = f"/api/runs/{self.id}/files/{name}"
        if isinstance(path_or_stream, (str, os.PathLike)):
            if not os.path.isfile(path_or_stream):  # noqa: PTH113  # pathlib is not imported here
                raise UserErrorException(f"no file {os.fspath(path_or_stream)!r} to upload as {name!r}")
            with open(path_or_stream, "rb") as stream:
                stored = self._connection.upload(address, stream)
        else:
            stored = self._connection.upload(address, path_or_stream)
        return UploadedFile(self.id, stored["name"], stored["size"])

    def upload_files(
        self,
        names: list[str],
        paths: list[str],
        return_artifacts: bool = False,
        timeout_seconds: float | None = None,
        datastore_name: str | None = None,
    ) -> None:
        """Add several files to the run, ``names[i]`` from ``paths[i]``."""
        if len(names) != len(paths):
            raise UserErrorException(f"got {len(names)} names for {len(paths)} paths")
        for name, path in zip(names, paths):
            self.upload_file(name, path, datastore_name)

    def upload_folder(self, name: str, path: str, datastore_name: str | None = None) -> None:
        """Add the files of a folder to the run, under ``name/``. Links that lead out of the folder are skipped."""
        import logging
        from pathlib import Path

        from runyard.sdk.azureml import no_effect

        no_effect.warn_ignored("Run.upload_folder", "datastore_name", datastore_name, "the yard stores a run's files")
        root = Path(path)
        if not root.is_dir():
            raise UserErrorException(f"no folder {path!r} to upload as {name!r}")
        for file in sorted(root.rglob("*")):
            if file.is_symlink() and not file.resolve().is_relative_to(root.resolve()):
                logging.getLogger("runyard").warning("%s was skipped: it is a link that leads out of the folder", file)
            elif file.is_file():
                self.upload_file(f"{name}/{file.relative_to(root).as_posix()}".lstrip("/"), file)

    def get_all_logs(self, destination: Optional[str] = None) -> Any:
        """Write every log below a folder and return the paths.

        Args:
            destination: The folder; the default is ``assets/<run id>``.
        """
        from pathlib import Path

        folder = Path(destination) if destination else Path("assets") / self.id
        if folder.exists() and not folder.is_dir():
            raise UserErrorException(f"destination must be a folder, got the file {str(folder)!r}")
        paths = []
        for name in self.get_file_names():
            if name.startswith("azureml-logs/"):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                self._download(name, target)
                paths.append(str(target))
        return paths

    def get_snapshot_id(self) -> str:
        """Return the id of the snapshot of the run's code.

        Raises:
            UserErrorException: The run has no snapshot.
        """
        snapshot_id = self._refresh()["snapshot_id"]
        if not snapshot_id:
            raise UserErrorException(f"run {self.id} has no snapshot", hint="run.take_snapshot(folder) takes one")
        return str(snapshot_id)

    def take_snapshot(self, file_or_folder_path: str) -> str:
        """Take the snapshot of an interactive run's code and return its id. A run that has one keeps it."""
        existing = self._refresh()["snapshot_id"]
        if existing:
            return str(existing)
        from pathlib import Path

        from runyard.sdk.training.submit import take_snapshot

        snapshot_id = take_snapshot(self._connection, Path(file_or_folder_path))
        self._view = self._connection.post(f"/api/runs/{self.id}/snapshot", {"snapshot_id": snapshot_id})
        return snapshot_id

    def restore_snapshot(self, snapshot_id: str | None = None, path: str | None = None) -> str:
        """Download the code of the run as a zip file.

        Args:
            snapshot_id: A snapshot; the default is that of this run.
            path: Folder for ``<snapshot id>.zip``; created if needed. The default is ``snapshots``.

        Returns:
            The absolute path of the zip file.
        """
        from pathlib import Path

        snapshot_id = snapshot_id or self.get_snapshot_id()
        folder = Path(path or "snapshots")
        folder.mkdir(parents=True, exist_ok=True)
        target = (folder / f"{snapshot_id}.zip").absolute()
        self._connection.download(f"/api/snapshots/{snapshot_id}/zip", target)
        return str(target)

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
        """Register a file or folder of this run as the next version of a model.

        Args:
            model_name: Name of the model.
            model_path: The file or folder inside the run, such as ``outputs/model``. The default is ``model_name``.
            tags: Tags of the version.
            properties: Properties of the version, which cannot be changed later.
            model_framework: Framework of the model, such as ``Model.Framework.ONNX``.
            model_framework_version: Version of the framework.
            description: Description of the version.
            datasets: Pairs of a purpose and the dataset that was used for it.
            sample_input_dataset: Dataset with a sample input.
            sample_output_dataset: Dataset with a sample output.
            resource_configuration: Resources that the model needs for serving.

        Raises:
            ModelPathNotFoundException: The run has no such file or folder.
        """
        from runyard.sdk.azureml import no_effect
        from runyard.sdk.model import registration
        from runyard.sdk.model.model import Model

        for name, value in kwargs.items():
            no_effect.warn_ignored("Run.register_model", name, value, "this version has no such parameter")
        path = os.path.normpath(model_path or model_name)
        self._upload_model_files(path)
        request = registration.build_request(
            "Run.register_model",
            model_name,
            tags,
            properties,
            description,
            datasets,
            model_framework,
            model_framework_version,
            sample_input_dataset,
            sample_output_dataset,
            resource_configuration,
        )
        registration.print_line(f"Registering model {model_name}")
        view = self._connection.post("/api/models", {**request, "run_id": self.id, "run_path": path})
        return Model(self.experiment.workspace, _view=view)

    def _upload_model_files(self, path: str) -> None:
        """Upload files that the yard cannot read: those of an interactive run, or of a script on another machine."""
        if self._session is not None:
            self._session.upload_outputs()
        elif self._inside and "RUNYARD_YARD_ELSEWHERE" in os.environ and os.path.exists(path):  # noqa: PTH110
            if any(name == path or name.startswith(path + "/") for name in self.get_file_names()):
                return
            if os.path.isdir(path):  # noqa: PTH112
                self.upload_folder(path, path)
            else:
                self.upload_file(path, path)

    def _get_outputs_datapath(self) -> DataPath:
        """Return the run's outputs for ``resume_from``. Published notebooks call this private name."""
        from runyard.sdk.training.resume import outputs_datapath

        return outputs_datapath(self)

    def _store_image(self, name: str, data: Path | BinaryIO) -> None:
        self.upload_file(name, data)

    def _download(self, name: str, target: Path) -> None:
        """Download to a temporary name first, so that an interrupted download leaves no partial file."""
        part = target.with_name(f".{os.urandom(8).hex()}.part")  # the file's name plus a suffix could be too long
        try:
            self._connection.download(f"/api/runs/{self.id}/files/{name}", part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


class UploadedFile:
    """The result of `upload_file`, in the form that scripts for the SDK v1 print."""

    def __init__(self, run_id: str, name: str, size: int) -> None:
        self.run_id, self.name, self.size = run_id, name, size

    def serialize(self) -> dict[str, Any]:
        artifact = {"path": self.name, "origin": "ExperimentRun", "container": f"dcid.{self.run_id}", "size": self.size}
        return {"artifacts": {self.name: artifact}, "artifactContentInformation": {self.name: artifact}, "errors": {}}
