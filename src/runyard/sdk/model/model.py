"""The `Model` class: one version of a registered model."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional, Union

from runyard.errors import UserErrorException, WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core.labels import as_labels
from runyard.sdk.model.deployment import ModelDeployment, Values
from runyard.sdk.model.lookup import find, query

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run

# aliases, because inside the class `list` is a method
Names = list[str]
Records = list[dict[str, Any]]
Models = list["Model"]

_MIN_PAGE_COUNT, _MAX_PAGE_COUNT = 20, 255


class Model(ModelDeployment):
    """A version of a registered model. ``Model(ws, name='digits')`` is the latest one.

    Args:
        workspace: The workspace that contains the model.
        name: Name of the model.
        id: Name and version, ``'digits:3'``; an alternative to ``name``.
        tags: Required tags: keys, or pairs of key and value.
        properties: Required properties: keys, or pairs of key and value.
        version: A number or an alias such as ``'champion'``; default: the latest version.
        run_id: Id of the run that registered it.
        model_framework: Framework of the model, such as ``Model.Framework.ONNX``.

    Raises:
        WebserviceException: No version matches.
    """

    class Framework:
        CUSTOM = "Custom"
        TENSORFLOW = "TensorFlow"
        SCIKITLEARN = "ScikitLearn"
        ONNX = "Onnx"
        TFKERAS = "TfKeras"
        PYTORCH = "PyTorch"
        MULTI = "Multi"

    def __init__(
        self,
        workspace: Workspace,
        name: str | None = None,
        id: str | None = None,
        tags: Values | None = None,
        properties: Values | None = None,
        version: Union[int, str, None] = None,
        run_id: str | None = None,
        model_framework: str | None = None,
        expand: bool = True,
        **kwargs: Any,
    ) -> None:
        warn_ignored("Model", "expand", None if expand else expand, "everything is read in one request")
        view = kwargs.pop("_view", None)
        alias = kwargs.pop("alias", None)
        for argument, value in kwargs.items():
            warn_ignored("Model", argument, value, "this version has no such parameter")
        self.workspace = workspace
        self._load(view or find(workspace, name, id, tags, properties, alias or version, run_id, model_framework))

    @staticmethod
    def register(
        workspace: Workspace,
        model_path: Union[str, Path],
        model_name: str,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        description: str | None = None,
        datasets: Values | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        child_paths: Names | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
    ) -> Model:
        """Register a local file or folder as the next version of a model.

        Args:
            workspace: The workspace to register it in.
            model_path: The file or folder.
            model_name: Name of the model.
            tags: Labels that can be changed later.
            properties: Labels that cannot be changed.
            description: Free text.
            datasets: Pairs of a purpose and a dataset: ``[('training', dataset)]``.
            model_framework: Framework of the model, such as ``Model.Framework.ONNX``.
            model_framework_version: Version of the framework.
            child_paths: Parts of the folder to register; default: all of it.
            sample_input_dataset: A dataset of sample inputs.
            sample_output_dataset: A dataset of sample outputs.
            resource_configuration: Recorded with the model; has no effect on services.

        Returns:
            The registered version.
        """
        from runyard.sdk.model import registration

        request = registration.build_request(
            "Model.register", model_name, tags, properties, description, datasets, model_framework,
            model_framework_version, sample_input_dataset, sample_output_dataset, resource_configuration,
        )  # fmt: skip
        view = registration.register_files(workspace, registration.local_files(model_path, child_paths), request)
        return Model(workspace, _view=view)

    @staticmethod
    def list(
        workspace: Workspace,
        name: str | None = None,
        tags: Values | None = None,
        properties: Values | None = None,
        run_id: str | None = None,
        latest: bool = False,
        dataset_id: str | None = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: str | None = None,
    ) -> Models:
        """Return the versions that match, ordered by name, newest version first.

        Args:
            workspace: The workspace to search.
            name: Name of the model.
            tags: Required tags: keys, or pairs of key and value.
            properties: Required properties: keys, or pairs of key and value.
            run_id: Id of the run that registered it.
            latest: Only the latest version of each name.
            dataset_id: Id of a dataset that the model refers to.
            model_framework: Framework of the model.
        """
        warn_ignored("Model.list", "expand", None if expand else expand, "everything is read in one request")
        if not _MIN_PAGE_COUNT <= page_count <= _MAX_PAGE_COUNT:
            raise UserErrorException(
                f"page_count must be between {_MIN_PAGE_COUNT} and {_MAX_PAGE_COUNT}, got {page_count!r}"
            )
        warn_ignored("Model.list", "page_count", None if page_count == 255 else page_count, "there are no pages")
        views = query(workspace, name, tags, properties, run_id, model_framework, dataset_id, latest)
        return [Model(workspace, _view=view) for view in views]

    @staticmethod
    def get_model_path(model_name: str, version: int | None = None, _workspace: Workspace | None = None) -> str:
        """Return the path of the registered file or folder.

        In a scoring script it is part of the service. In a run it is downloaded if necessary.

        Args:
            model_name: Name of the model.
            version: Version number; default: the latest.

        Raises:
            ModelNotFoundException: The model is not available.
        """
        from runyard.sdk.model.path import model_path

        return model_path(model_name, version, _workspace)

    @property
    def run(self) -> Optional[Run]:
        """The run that registered it."""
        if self.run_id is None:
            return None
        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.run.run import Run

        return Run(Experiment(self.workspace, self.experiment_name), self.run_id)

    def download(self, target_dir: str = ".", exist_ok: bool = False, exists_ok: bool | None = None) -> str:
        """Download the files.

        Args:
            target_dir: Folder to download to.
            exist_ok: Replace existing files.

        Returns:
            The path of the registered file or folder below ``target_dir``.
        """
        from runyard.sdk.model.path import download

        if exists_ok is not None:
            warn_ignored(self, "exists_ok", exists_ok, "it was renamed to exist_ok, and is used as such")
        return str(download(self.workspace.connection, self._page(), target_dir, exist_ok or bool(exists_ok)))

    def get_sas_urls(self) -> dict[str, str]:
        """Return the file URLs of the stored contents, which must not be written to."""
        store = self.workspace.home / "artifacts"
        return {
            file["path"]: (store / file["digest"][:2] / file["digest"][2:]).as_uri() for file in self._page()["files"]
        }

    def update(
        self,
        tags: dict[str, Any] | None = None,
        description: str | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
    ) -> None:
        """Change the metadata; ``tags`` replaces all existing tags."""
        from runyard.sdk.model.registration import build_details

        details = build_details("Model.update", sample_input_dataset, sample_output_dataset, resource_configuration)
        change: dict[str, Any] = {"description": description, "details": details}
        if tags is not None:
            change["tags"] = as_labels(tags, "tags")
            change["remove_tags"] = [key for key in self.tags if key not in change["tags"]]
        self._patch(change)

    def update_tags_properties(
        self,
        add_tags: dict[str, Any] | None = None,
        remove_tags: Names | None = None,
        add_properties: dict[str, Any] | None = None,
    ) -> None:
        removed = [remove_tags] if isinstance(remove_tags, str) else [*(remove_tags or [])]
        tags, properties = as_labels(add_tags, "tags"), as_labels(add_properties, "properties")
        self._patch({"tags": tags, "remove_tags": removed, "properties": properties})

    def add_tags(self, tags: dict[str, Any]) -> None:
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags: Names) -> None:
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Add properties. The value of an existing property cannot be changed."""
        self.update_tags_properties(add_properties=properties)

    def add_dataset_references(self, datasets: Values) -> None:
        """Add pairs of a purpose and a dataset: ``[('training', dataset)]``."""
        from runyard.sdk.model.registration import as_datasets

        self._patch({"datasets": as_datasets(datasets)})

    def delete(self) -> None:
        """Delete this version. Its number is not used again.

        Raises:
            WebserviceException: A service uses it, or an alias refers to it.
        """
        from runyard.sdk.training.submit import user_name

        self.workspace.connection.delete(self._route, by=user_name())

    def set_alias(self, alias: str) -> None:
        """Let ``Model(ws, name=…, version=alias)`` return this version instead of the one that had the alias."""
        from runyard.sdk.training.submit import user_name

        body = {"version": self.version, "by": user_name()}
        self._load(self.workspace.connection.post(f"/api/models/{self.name}/aliases/{alias}", body))

    def remove_alias(self, alias: str) -> None:
        from runyard.sdk.training.submit import user_name

        self.workspace.connection.delete(f"/api/models/{self.name}/aliases/{alias}", by=user_name())
        self._load(self._page()["model"])

    def set_stage(self, stage: str, note: str | None = None) -> None:
        """Set the stage; user and time are recorded.

        Args:
            stage: ``none``, ``candidate``, ``approved``, ``rejected`` or ``archived``.
            note: A comment.
        """
        from runyard.sdk.training.submit import user_name

        body = {"stage": stage, "note": note, "by": user_name()}
        self._load(self.workspace.connection.post(f"{self._route}/stage", body))

    def history(self) -> Records:
        """Return the changes of this version with user and time, oldest first: registration, stages, aliases."""
        return [*self._page()["history"]]

    def files(self) -> Names:
        """Return the paths of the files, relative to the folder of the version."""
        return [file["path"] for file in self._page()["files"]]

    def lineage(self) -> dict[str, Any]:
        """Return the origin: run, code, packages, data and parent model."""
        page = self._page()
        model = page["model"]
        return {
            "run_id": model["run_id"],
            "experiment": model["experiment"],
            "snapshot_id": model["snapshot_id"],
            "environment_key": model["environment_key"],
            "environment_lock": page["environment_lock"],
            "data": model["data"],
            "datasets": model["details"].get("datasets", []),
            "made_of": model["details"].get("made_of"),
        }

    def compare(self, other: Union[Model, str]) -> dict[str, Any]:
        """Return the differences from another version or model, and the metrics of both.

        Args:
            other: A model, its id, or another version of this model.
        """
        other_id = other.id if isinstance(other, Model) else other if ":" in other else f"{self.name}:{other}"
        return dict(self.workspace.connection.get(f"{self._route}/compare", other=other_id))

    def serialize(self) -> dict[str, Any]:
        return {
            "createdTime": self.created_time.isoformat(),
            "createdBy": self.created_by,
            "description": self.description,
            "id": self.id,
            "mimeType": self.mime_type,
            "name": self.name,
            "framework": self.model_framework,
            "frameworkVersion": self.model_framework_version,
            "tags": self.tags,
            "properties": self.properties,
            "unpack": self.unpack,
            "url": self.url,
            "version": self.version,
            "experimentName": self.experiment_name,
            "runId": self.run_id,
            "datasets": self.datasets,
            "resourceConfiguration": self.resource_configuration,
            "stage": self.stage,
            "aliases": self.aliases,
        }

    @staticmethod
    def deserialize(workspace: Workspace, model_payload: dict[str, Any]) -> Model:
        """Return the current state of the model that ``serialize`` described."""
        if not isinstance(model_payload, dict) or "id" not in model_payload:
            raise WebserviceException("model_payload must be the result of model.serialize(), a dict with an 'id'")
        return Model(workspace, id=model_payload["id"])

    def __repr__(self) -> str:
        return (
            f"Model(workspace={self.workspace!r}, name={self.name}, id={self.id}, version={self.version}, "
            f"tags={json.dumps(self.tags)}, properties={json.dumps(self.properties)})"
        )

    @property
    def _route(self) -> str:
        return f"/api/models/{self.name}/versions/{self.version}"

    def _page(self) -> dict[str, Any]:
        return dict(self.workspace.connection.get(self._route))

    def _patch(self, change: dict[str, Any]) -> None:
        self._load(self.workspace.connection.patch(self._route, change))

    def _load(self, view: dict[str, Any]) -> None:
        self.name: str = view["name"]
        self.version: int = view["version"]
        self.id: str = view["id"]
        self.description: Optional[str] = view["description"]
        self.tags: dict[str, Any] = view["tags"]
        self.properties: dict[str, Any] = view["properties"]
        self.url = f"aml://asset/{view['digest'][:32]}"
        self.model_framework: Optional[str] = view["framework"]
        self.model_framework_version: Optional[str] = view["framework_version"]
        self.created_by: Optional[str] = view["created_by"]
        self.created_time = datetime.fromtimestamp(view["created_at"], timezone.utc)
        self.mime_type = "application/octet-stream"
        self.unpack = False  # files are stored unchanged
        self.experiment_name: str = view["experiment"] or ""
        self.run_id: Optional[str] = view["run_id"]
        self.datasets: Records = view["details"].get("datasets", [])
        self.sample_input_dataset = view["details"].get("sample_input_dataset")
        self.sample_output_dataset = view["details"].get("sample_output_dataset")
        self.resource_configuration = view["details"].get("resource_configuration")
        self.parent_id: Optional[str] = view["details"].get("made_of")
        self.metrics: dict[str, Any] = view["metrics"]
        self.stage: str = view["stage"]
        self.aliases: Names = view["aliases"]
        self.size: int = view["size"]
