"""Workspace: the yard of this machine, as the SDK sees it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.azureml.cloud_workspace import NAMES_ONLY, NO_ACCOUNTS, NO_NETWORKS, NO_SIGN_IN, CloudWorkspace

if TYPE_CHECKING:
    from runyard.sdk.compute.target import ComputeTarget
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.core.secrets import Secrets
    from runyard.sdk.data.base import AbstractDataset
    from runyard.sdk.data.datastore import AbstractDatastore
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.model.image import Image
    from runyard.sdk.model.model import Model
    from runyard.sdk.run.run import Run
    from runyard.sdk.webservice.webservice import Webservice

log = logging.getLogger("runyard")
V = TypeVar("V")
_IN_FOLDERS = (".azureml/config.json", ".azureml/project.json", "aml_config/config.json", "aml_config/project.json")
_BARE = ("config.json", "project.json")


class Workspace(CloudWorkspace):
    """The yard of this machine. The first call that needs its process starts it.

    Args:
        subscription_id: A name that scripts for the SDK v1 print; it selects nothing.
        resource_group: The same.
        workspace_name: The same.
        auth: Has no effect.
        sku: Has no effect.
        tags: Stored in this object only.
        home: Home folder of the yard. The default is ``RUNYARD_HOME``, else ``~/.runyard``.
        location: A name to print.
    """

    def __init__(
        self,
        subscription_id: str = "local",
        resource_group: str = "local",
        workspace_name: str = "runyard",
        auth: Any = None,
        _location: str | None = None,
        _disable_service_check: bool = False,
        _workspace_id: str | None = None,
        sku: str = "basic",
        tags: dict[str, str] | None = None,
        _cloud: str = "AzureCloud",
        *,
        home: str | Path | None = None,
        location: str = "local",
    ) -> None:
        for label, value in (
            ("subscription_id", subscription_id),
            ("resource_group", resource_group),
            ("workspace_name", workspace_name),
        ):
            if not isinstance(value, str) or not value:
                raise UserErrorException(f"{label} must be non-empty text, got {value!r}")
        self.subscription_id = subscription_id
        self.resource_group = resource_group
        self.name = workspace_name
        self.location = _location or location
        self.connection = Connection(home)
        self._sku = sku
        no_effect.warn_ignored(self, "auth", auth, NO_SIGN_IN)
        no_effect.warn_ignored(self, "sku", None if sku == "basic" else sku, NO_ACCOUNTS)
        self._describe(tags=tags)

    @classmethod
    def from_config(
        cls,
        path: str | Path | None = None,
        auth: Any = None,
        _logger: Any = None,
        _file_name: str | None = None,
        *,
        home: str | Path | None = None,
    ) -> Workspace:
        """Read the names of the workspace from the nearest ``config.json``.

        The file is searched in ``.azureml/``, ``aml_config/`` and the folder itself, upwards from ``path``.
        Without one, the default names are used: a configuration names a workspace, it does not select a yard.

        Args:
            path: A folder or file to start from; the default is the current folder.
            auth: Has no effect.
            home: Home folder of the yard.

        Raises:
            UserErrorException: ``path`` is given and has no configuration, or the file lacks a required key.
        """
        config = _find_config(Path(path or ".").absolute(), _file_name)
        if config is None:
            if path is not None:
                raise UserErrorException(
                    f"no {_file_name or 'config.json'} at or above {Path(path).absolute()}",
                    hint="Workspace() needs no file: it is the yard of this machine",
                )
            log.info("no config.json here or above: using the yard of this machine")
            return cls(auth=auth, home=home)
        return cls(*_read_config(config), auth=auth, home=home)

    @classmethod
    def create(
        cls,
        name: str,
        auth: Any = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        create_resource_group: bool = True,
        sku: str = "basic",
        tags: dict[str, str] | None = None,
        friendly_name: str | None = None,
        storage_account: str | None = None,
        key_vault: str | None = None,
        app_insights: str | None = None,
        container_registry: str | None = None,
        adb_workspace: str | None = None,
        primary_user_assigned_identity: str | None = None,
        cmk_keyvault: str | None = None,
        resource_cmk_uri: str | None = None,
        hbi_workspace: bool = False,
        default_cpu_compute_target: Any = None,
        default_gpu_compute_target: Any = None,
        private_endpoint_config: Any = None,
        private_endpoint_auto_approval: bool = True,
        exist_ok: bool = False,
        show_output: bool = True,
        user_assigned_identity_for_cmk_encryption: str | None = None,
        system_datastores_auth_mode: str = "accessKey",
        v1_legacy_mode: bool | None = None,
    ) -> Workspace:
        """Return the yard of this machine under a name, and create its default clusters.

        The yard always exists, so ``exist_ok`` makes no difference. Arguments that describe a cloud have no effect; a
        warning is logged and stored with the runs that are submitted through the workspace.

        Args:
            name: A name to print.
            default_cpu_compute_target: Configuration of the cluster ``cpu-cluster``.
            default_gpu_compute_target: Configuration of the cluster ``gpu-cluster``.
        """
        workspace = cls(
            subscription_id or "local",
            resource_group or "local",
            name,
            auth=auth,
            sku=sku,
            tags=tags,
            location=location or "local",
        )
        workspace._describe(friendly_name=friendly_name)
        for argument, value, reason in (
            ("storage_account", storage_account, NO_ACCOUNTS),
            ("key_vault", key_vault, "a yard stores secrets in its home folder"),
            ("app_insights", app_insights, "the studio shows the state of runs and services"),
            ("container_registry", container_registry, "podman or docker pull images with their own sign-in"),
            ("adb_workspace", adb_workspace, "runs on Spark are not available"),
            ("primary_user_assigned_identity", primary_user_assigned_identity, NO_SIGN_IN),
            ("cmk_keyvault", cmk_keyvault, "encrypt the disk of the home folder"),
            ("resource_cmk_uri", resource_cmk_uri, "encrypt the disk of the home folder"),
            ("hbi_workspace", hbi_workspace or None, NO_ACCOUNTS),
            ("private_endpoint_config", private_endpoint_config, NO_NETWORKS),
            ("user_assigned_identity_for_cmk_encryption", user_assigned_identity_for_cmk_encryption, NO_ACCOUNTS),
            ("v1_legacy_mode", v1_legacy_mode, NO_NETWORKS),
        ):
            no_effect.warn_ignored(workspace, argument, value, reason, caller="Workspace.create")
        clusters = {cls.DEFAULT_CPU_CLUSTER_NAME: default_cpu_compute_target}
        clusters[cls.DEFAULT_GPU_CLUSTER_NAME] = default_gpu_compute_target
        for cluster, configuration in clusters.items():
            if configuration is not None:
                from runyard.sdk.compute.target import ComputeTarget

                ComputeTarget.create(workspace, cluster, configuration)
        return workspace

    @classmethod
    def get(
        cls,
        name: str,
        auth: Any = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        location: str | None = None,
        cloud: str = "AzureCloud",
        id: str | None = None,
    ) -> Workspace:
        """Return the yard of this machine under any name."""
        no_effect.warn_ignored("Workspace.get", "id", id, NAMES_ONLY)
        no_effect.warn_ignored("Workspace.get", "cloud", None if cloud == "AzureCloud" else cloud, NO_ACCOUNTS)
        return cls(subscription_id or "local", resource_group or "local", name, auth=auth, location=location or "local")

    @classmethod
    def list(cls, subscription_id: str, auth: Any = None, resource_group: str | None = None) -> dict[str, Any]:
        """Return a dict with the yard of this machine, under the name in the nearest ``config.json``."""
        workspace = cls.from_config(auth=auth)
        return {workspace.name: [workspace]}

    def write_config(self, path: str | Path | None = None, file_name: str | None = None) -> None:
        """Write ``.azureml/config.json`` below ``path``, or ``aml_config/config.json`` if that folder exists."""
        base = Path(path or ".")
        folder = base / "aml_config" if (base / "aml_config").is_dir() else base / ".azureml"
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "subscription_id": self.subscription_id,
            "resource_group": self.resource_group,
            "workspace_name": self.name,
        }
        (folder / (file_name or "config.json")).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")

    def get_details(self) -> dict[str, Any]:
        """Return id, name, location, home folder and version."""
        health = self.connection.get("/api/health")
        return {
            "id": f"/subscriptions/{self.subscription_id}/resourceGroups/{self.resource_group}/workspaces/{self.name}",
            "name": self.name,
            "location": self.location,
            "home": health["home"],
            "version": health["version"],
        }

    def get_mlflow_tracking_uri(self, with_auth: bool = True) -> str:
        """Return the address for ``mlflow.set_tracking_uri``; the yard listens there on this machine only.

        Args:
            with_auth: Set MLFLOW_TRACKING_TOKEN in this process, where MLflow's client reads the token.
        """
        address = self.connection.post("/api/studio", {})
        token = str(address["token"])
        # the script of a run has a token that names its run: runs that it creates become children of this run
        if with_auth and not os.environ.get("MLFLOW_TRACKING_TOKEN", "").startswith(f"{token}."):
            os.environ["MLFLOW_TRACKING_TOKEN"] = token
        return str(address["url"]).rstrip("/")

    @property
    def home(self) -> Path:
        """Home folder of the yard."""
        return self.connection.home

    @property
    def secrets(self) -> Secrets:
        """The secrets that runs of this workspace can use: ``workspace.secrets.set("hf-token", value)``."""
        from runyard.sdk.core.secrets import Secrets

        return Secrets(self.connection)

    def get_run(self, run_id: str) -> Run:
        """Open a run by its id, in any experiment."""
        from runyard.sdk.run.run import Run

        return Run.get(self, run_id)

    @property
    def experiments(self) -> NameDict[Experiment]:
        from runyard.sdk.core.experiment import Experiment

        return NameDict((e["name"], Experiment(self, e["name"])) for e in self.connection.get("/api/experiments"))

    @property
    def compute_targets(self) -> NameDict[ComputeTarget]:
        from runyard.sdk.compute.target import ComputeTarget

        return NameDict((target.name, target) for target in ComputeTarget.list(self))

    def get_default_compute_target(self, type: str) -> ComputeTarget:
        """Return the cluster ``cpu-cluster`` or ``gpu-cluster`` if it exists, else the yard's machine.

        Args:
            type: ``"CPU"`` or ``"GPU"``.
        """
        names = {"CPU": self.DEFAULT_CPU_CLUSTER_NAME, "GPU": self.DEFAULT_GPU_CLUSTER_NAME}
        if not isinstance(type, str) or type.upper() not in names:
            raise UserErrorException(f"type must be 'CPU' or 'GPU', got {type!r}")
        targets = self.compute_targets
        return targets.get(names[type.upper()], targets["local"])

    @property
    def datastores(self) -> NameDict[AbstractDatastore]:
        from runyard.sdk.data.registry import list_datastores

        return NameDict((store.name, store) for store in list_datastores(self))

    def get_default_datastore(self) -> AbstractDatastore:
        """Return the default datastore: a folder in the yard's home, unless another one was set as default."""
        from runyard.sdk.data.registry import Datastore

        return Datastore.get_default(self)

    def set_default_datastore(self, name: str) -> None:
        """Make a registered datastore the default."""
        from runyard.sdk.data.registry import Datastore

        Datastore.get(self, name).set_as_default()

    @property
    def environments(self) -> NameDict[Environment]:
        from runyard.sdk.environment.environment import Environment

        return NameDict(Environment.list(self).items())

    @property
    def models(self) -> NameDict[Model]:
        """The latest version of each model."""
        from runyard.sdk.model.model import Model

        return NameDict((model.name, model) for model in Model.list(self, latest=True))

    @property
    def webservices(self) -> NameDict[Webservice]:
        from runyard.sdk.webservice.webservice import Webservice

        return NameDict((service.name, service) for service in Webservice.list(self))

    @property
    def images(self) -> NameDict[Image]:
        """The newest version of each image."""
        from runyard.sdk.model.image import Image

        return NameDict((image.name, image) for image in Image.list(self))

    @property
    def datasets(self) -> NameDict[AbstractDataset]:
        """The newest version of each registered dataset."""
        from runyard.sdk.data.base import AbstractDataset

        return NameDict(AbstractDataset.get_all(self).items())

    def __repr__(self) -> str:
        return (
            f"Workspace.create(name={self.name!r}, subscription_id={self.subscription_id!r}, "
            f"resource_group={self.resource_group!r})"
        )

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import table_html

        names = list(self.experiments)[::-1]  # the newest first
        text = ", ".join(names[:20]) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
        return table_html({"Workspace": self.name, "Home": self.home, "Experiments": text or "none yet"})


class NameDict(dict[str, V]):
    """A dict by name that can also be called: in the first releases of the SDK these were methods."""

    def __init__(self, items: Iterator[tuple[str, V]] | Any = ()) -> None:
        super().__init__(items)

    def __call__(self) -> NameDict[V]:
        return self


def _find_config(start: Path, file_name: str | None = None) -> Path | None:
    if start.is_file():
        return start
    names = (f".azureml/{file_name}", f"aml_config/{file_name}", file_name) if file_name else (*_IN_FOLDERS, *_BARE)
    for folder in (start, *start.parents):
        for name in names:
            # config.json is a common file name: a bare one counts only if it names a workspace
            if (folder / name).is_file() and (name not in _BARE or _names_a_workspace(folder / name)):
                return folder / name
    return None


def _names_a_workspace(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and bool({"workspace_name", "Scope", "subscription_id"} & set(content))


def _read_config(path: Path) -> tuple[str, str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserErrorException(
            f"{path} cannot be read: {error}", hint="ws.write_config() writes a valid one"
        ) from error
    if isinstance(content, dict) and "Scope" in content:
        parts = str(content["Scope"]).strip("/").split("/")
        values = dict(zip((part.lower() for part in parts[::2]), parts[1::2]))
        content = {
            "subscription_id": values.get("subscriptions"),
            "resource_group": values.get("resourcegroups"),
            "workspace_name": values.get("workspaces"),
        }
    keys = ("subscription_id", "resource_group", "workspace_name")
    missing = [key for key in keys if not isinstance(content, dict) or not content.get(key)]
    if missing:
        raise UserErrorException(
            f"{os.fspath(path)} lacks {', '.join(missing)}",
            hint=f"it needs {', '.join(keys)}; any text is valid: they are names to print",
        )
    return str(content[keys[0]]), str(content[keys[1]]), str(content[keys[2]])
