"""Model: one version of a registered model, seen from people's side."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional, Union

from runyard.errors import UserErrorException, WebserviceException
from runyard.sdk.azureml.no_effect import warn_ignored
from runyard.sdk.core.labels import as_labels
from runyard.sdk.model.lookup import find, query

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.run.run import Run

# by names of their own: in the class, `list` is what lists models
Anything = list[Any]
Names = list[str]
Facts = list[dict[str, Any]]
Listed = list["Model"]

_FEWEST_A_PAGE, _MOST_A_PAGE = 20, 255


class Model:
    """``Model(ws, name='digits')`` is the latest version; ``version`` takes a number or an alias (``'champion'``)."""

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
        tags: Anything | None = None,
        properties: Anything | None = None,
        version: Union[int, str, None] = None,
        run_id: str | None = None,
        model_framework: str | None = None,
        expand: bool = True,
        **kwargs: Any,
    ) -> None:
        warn_ignored("Model", "expand", None if expand else expand, "everything is read in one request")
        view = kwargs.pop("_view", None)
        alias = kwargs.pop("alias", None)
        for other, value in kwargs.items():
            warn_ignored("Model", other, value, "this version has no such parameter")
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
        datasets: Anything | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        child_paths: Names | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
    ) -> Model:
        """A local file or folder becomes the next version of the name."""
        from runyard.sdk.model import registration as registering

        about = registering.build_request(
            "Model.register", model_name, tags, properties, description, datasets, model_framework,
            model_framework_version, sample_input_dataset, sample_output_dataset, resource_configuration,
        )  # fmt: skip
        view = registering.register_files(workspace, registering.local_files(model_path, child_paths), about)
        return Model(workspace, _view=view)

    @staticmethod
    def list(
        workspace: Workspace,
        name: str | None = None,
        tags: Anything | None = None,
        properties: Anything | None = None,
        run_id: str | None = None,
        latest: bool = False,
        dataset_id: str | None = None,
        expand: bool = True,
        page_count: int = 255,
        model_framework: str | None = None,
    ) -> Listed:
        """By name, of each the newest version first. ``tags`` are keys, or pairs of key and value."""
        warn_ignored("Model.list", "expand", None if expand else expand, "everything is read in one request")
        if not _FEWEST_A_PAGE <= page_count <= _MOST_A_PAGE:
            raise UserErrorException(f"page_count is {_FEWEST_A_PAGE} to {_MOST_A_PAGE}, not {page_count!r}")
        warn_ignored("Model.list", "page_count", None if page_count == 255 else page_count, "there are no pages: all come")
        views = query(workspace, name, tags, properties, run_id, model_framework, dataset_id, latest)
        return [Model(workspace, _view=view) for view in views]

    @staticmethod
    def get_model_path(model_name: str, version: int | None = None, _workspace: Workspace | None = None) -> str:
        """In a scoring script: the file or folder that was registered. In a run: downloaded, if it is not there."""
        from runyard.sdk.model.path import model_path

        return model_path(model_name, version, _workspace)

    @staticmethod
    def deploy(
        workspace: Workspace,
        name: str,
        models: Anything,
        inference_config: Any = None,
        deployment_config: Any = None,
        deployment_target: Any = None,
        overwrite: bool = False,
        show_output: bool = False,
    ) -> Any:
        from runyard.sdk.webservice import deploy

        return deploy.deploy(
            workspace, name, models, inference_config, deployment_config, deployment_target, overwrite, show_output
        )

    @staticmethod
    def package(
        workspace: Workspace,
        models: Anything,
        inference_config: Any = None,
        generate_dockerfile: bool = False,
        image_name: str | None = None,
        image_label: str | None = None,
    ) -> Any:
        from runyard.sdk.webservice import deploy

        return deploy.package(workspace, models, inference_config, generate_dockerfile, image_name, image_label)

    @staticmethod
    def profile(
        workspace: Workspace,
        profile_name: str,
        models: Anything,
        inference_config: Any,
        input_dataset: Any,
        cpu: float | None = None,
        memory_in_gb: float | None = None,
        description: str | None = None,
    ) -> Any:
        from runyard.sdk.webservice import deploy

        return deploy.profile(
            workspace, profile_name, models, inference_config, input_dataset, cpu, memory_in_gb, description
        )

    @staticmethod
    def print_configuration(
        models: Anything, inference_config: Any, deployment_config: Any, deployment_target: Any
    ) -> None:
        from runyard.sdk.webservice import deploy

        deploy.print_configuration(models, inference_config, deployment_config, deployment_target)

    @property
    def run(self) -> Optional[Run]:
        """The run that it comes from."""
        if self.run_id is None:
            return None
        from runyard.sdk.core.experiment import Experiment
        from runyard.sdk.run.run import Run

        return Run(Experiment(self.workspace, self.experiment_name), self.run_id)

    def download(self, target_dir: str = ".", exist_ok: bool = False, exists_ok: bool | None = None) -> str:
        """The path of the file or folder that was registered, below ``target_dir``."""
        from runyard.sdk.model.path import download

        if exists_ok is not None:
            warn_ignored(self, "exists_ok", exists_ok, "it is called exist_ok since, and was taken as that")
        return str(download(self.workspace.connection, self._page(), target_dir, exist_ok or bool(exists_ok)))

    def get_sas_urls(self) -> dict[str, str]:
        """Where each file's stored content is: addresses that this machine's owner can read, and must not write to."""
        kept = self.workspace.home / "artifacts"
        return {
            file["path"]: (kept / file["digest"][:2] / file["digest"][2:]).as_uri() for file in self._page()["files"]
        }

    def update(
        self,
        tags: dict[str, Any] | None = None,
        description: str | None = None,
        sample_input_dataset: Any = None,
        sample_output_dataset: Any = None,
        resource_configuration: Any = None,
    ) -> None:
        """``tags`` take the place of all that were there."""
        from runyard.sdk.model.registration import details

        change: dict[str, Any] = {
            "description": description,
            "details": details("Model.update", sample_input_dataset, sample_output_dataset, resource_configuration),
        }
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
        gone = [remove_tags] if isinstance(remove_tags, str) else [*(remove_tags or [])]
        tags, properties = as_labels(add_tags, "tags"), as_labels(add_properties, "properties")
        self._patch({"tags": tags, "remove_tags": gone, "properties": properties})

    def add_tags(self, tags: dict[str, Any]) -> None:
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags: Names) -> None:
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Written once: another value for the same key is refused."""
        self.update_tags_properties(add_properties=properties)

    def add_dataset_references(self, datasets: Anything) -> None:
        """Pairs of what for and a dataset: ``[('training', dataset)]``."""
        from runyard.sdk.model.registration import as_datasets

        self._patch({"datasets": as_datasets(datasets)})

    def delete(self) -> None:
        """Refused while a service uses it, or an alias names it. The number of a version is never given again."""
        from runyard.sdk.training.submit import user_name

        self.workspace.connection.delete(self._route, by=user_name())

    def set_alias(self, alias: str) -> None:
        """``Model(ws, name=…, version=alias)`` is this version from now on, until another one gets the alias."""
        from runyard.sdk.training.submit import user_name

        body = {"version": self.version, "by": user_name()}
        self._load(self.workspace.connection.post(f"/api/models/{self.name}/aliases/{alias}", body))

    def remove_alias(self, alias: str) -> None:
        from runyard.sdk.training.submit import user_name

        self.workspace.connection.delete(f"/api/models/{self.name}/aliases/{alias}", by=user_name())
        self._load(self._page()["model"])

    def set_stage(self, stage: str, note: str | None = None) -> None:
        """``none``, ``candidate``, ``approved``, ``rejected`` or ``archived``; who said so, and when, is kept."""
        from runyard.sdk.training.submit import user_name

        body = {"stage": stage, "note": note, "by": user_name()}
        self._load(self.workspace.connection.post(f"{self._route}/stage", body))

    def history(self) -> Facts:
        """Who did what to it, and when: registered, approved, named. Oldest first."""
        told_of: Facts = self._page()["history"]
        return told_of

    def files(self) -> Names:
        """Names below the folder of the version."""
        return [file["path"] for file in self._page()["files"]]

    def lineage(self) -> dict[str, Any]:
        """Where it comes from: run, code, packages, data, and the model that it was made of."""
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
        """What differs from another version, or from another model, and the metrics of both."""
        text = other.id if isinstance(other, Model) else other if ":" in other else f"{self.name}:{other}"
        found: dict[str, Any] = self.workspace.connection.get(f"{self._route}/compare", other=text)
        return found

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
        """The model that ``serialize`` was called of, as it is now."""
        if not isinstance(model_payload, dict) or "id" not in model_payload:
            raise WebserviceException("what was serialized of a model is a dict with its id")
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
        page: dict[str, Any] = self.workspace.connection.get(self._route)
        return page

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
        self.unpack = False  # files are kept as they are
        self.experiment_name: str = view["experiment"] or ""
        self.run_id: Optional[str] = view["run_id"]
        self.datasets: Facts = view["details"].get("datasets", [])
        self.sample_input_dataset = view["details"].get("sample_input_dataset")
        self.sample_output_dataset = view["details"].get("sample_output_dataset")
        self.resource_configuration = view["details"].get("resource_configuration")
        self.parent_id: Optional[str] = view["details"].get("made_of")
        self.metrics: dict[str, Any] = view["metrics"]
        self.stage: str = view["stage"]
        self.aliases: Names = view["aliases"]
        self.size: int = view["size"]
