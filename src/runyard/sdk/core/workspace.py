"""Workspace: the yard of this machine, seen from people's side."""

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
from runyard.sdk.core.workspace_cloud import NAMES_ONLY, NO_ACCOUNTS, NO_NETWORKS, OPEN_TO_ITS_OWNER, WorkspaceOfV1

if TYPE_CHECKING:
    from runyard.sdk.compute.target import ComputeTarget
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.data.base import AbstractDataset
    from runyard.sdk.data.datastore import AbstractDatastore
    from runyard.sdk.environment.environment import Environment
    from runyard.sdk.model.image import Image
    from runyard.sdk.model.model import Model
    from runyard.sdk.webservice.webservice import Webservice

log = logging.getLogger("runyard")
V = TypeVar("V")
_PLACES = (".azureml/config.json", ".azureml/project.json", "aml_config/config.json", "aml_config/project.json")
_BARE = ("config.json", "project.json")


class Workspace(WorkspaceOfV1):
    """``Workspace()`` is the yard of this machine; its process is started by the first call that needs it.

    ``subscription_id``, ``resource_group``, ``workspace_name`` are names that scripts written for the SDK v1 print;
    they are kept as they were given and select nothing. Which yard it is, is said by ``home`` (or RUNYARD_HOME).
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
                raise UserErrorException(f"{label} must be a text that is not empty, not {value!r}")
        self.subscription_id = subscription_id
        self.resource_group = resource_group
        self.name = workspace_name
        self.location = _location or location
        self.connection = Connection(home)
        self._sku = sku
        no_effect.told(self, "auth", auth, OPEN_TO_ITS_OWNER)
        no_effect.told(self, "sku", None if sku == "basic" else sku, NO_ACCOUNTS)
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
        """From the nearest ``config.json`` (in ``.azureml/``, ``aml_config/`` or the folder itself), going up.

        Without one it is the yard of this machine: a configuration names a workspace, it does not select a yard.
        """
        found = _find_config(Path(path or ".").absolute(), _file_name)
        if found is None:
            if path is not None:
                raise UserErrorException(
                    f"no {_file_name or 'config.json'} at or above {Path(path).absolute()}",
                    hint="Workspace() needs none: it is the yard of this machine",
                )
            log.info("no config.json here or above: this is the yard of this machine")
            return cls(auth=auth, home=home)
        return cls(*_read_config(found), auth=auth, home=home)

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
        """The yard of this machine under that name, with the clusters that are asked for.

        It is there already, whatever its name, so ``exist_ok`` is never in the way. What describes a cloud is said
        to have no effect, and kept with the runs that are submitted through the workspace.
        """
        made = cls(
            subscription_id or "local",
            resource_group or "local",
            name,
            auth=auth,
            sku=sku,
            tags=tags,
            location=location or "local",
        )
        made._describe(friendly_name=friendly_name)
        for argument, value, why in (
            ("storage_account", storage_account, NO_ACCOUNTS),
            ("key_vault", key_vault, "a yard keeps no secrets of yours"),
            ("app_insights", app_insights, "the studio shows how runs and services are"),
            ("container_registry", container_registry, "images are pulled by podman or docker, as they are signed in"),
            ("adb_workspace", adb_workspace, "runs on Spark are not available"),
            ("primary_user_assigned_identity", primary_user_assigned_identity, OPEN_TO_ITS_OWNER),
            ("cmk_keyvault", cmk_keyvault, "encrypt the disk that the home folder is on"),
            ("resource_cmk_uri", resource_cmk_uri, "encrypt the disk that the home folder is on"),
            ("hbi_workspace", hbi_workspace or None, NO_ACCOUNTS),
            ("private_endpoint_config", private_endpoint_config, NO_NETWORKS),
            ("user_assigned_identity_for_cmk_encryption", user_assigned_identity_for_cmk_encryption, NO_ACCOUNTS),
            ("v1_legacy_mode", v1_legacy_mode, NO_NETWORKS),
        ):
            no_effect.told(made, argument, value, why, by="Workspace.create")
        clusters = {cls.DEFAULT_CPU_CLUSTER_NAME: default_cpu_compute_target}
        clusters[cls.DEFAULT_GPU_CLUSTER_NAME] = default_gpu_compute_target
        for cluster, configuration in clusters.items():
            if configuration is not None:
                from runyard.sdk.compute.target import ComputeTarget

                ComputeTarget.create(made, cluster, configuration)
        return made

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
        """The yard of this machine, under any name."""
        no_effect.told("Workspace.get", "id", id, NAMES_ONLY)
        no_effect.told("Workspace.get", "cloud", None if cloud == "AzureCloud" else cloud, NO_ACCOUNTS)
        return cls(subscription_id or "local", resource_group or "local", name, auth=auth, location=location or "local")

    @classmethod
    def list(cls, subscription_id: str, auth: Any = None, resource_group: str | None = None) -> dict[str, Any]:
        """Name to workspaces: the yard of this machine, under the name that the nearest ``config.json`` gives it."""
        here = cls.from_config(auth=auth)
        return {here.name: [here]}

    def write_config(self, path: str | Path | None = None, file_name: str | None = None) -> None:
        """``.azureml/config.json`` below ``path``, or ``aml_config/`` where that folder is there already."""
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
        health = self.connection.get("/api/health")
        return {
            "id": f"/subscriptions/{self.subscription_id}/resourceGroups/{self.resource_group}/workspaces/{self.name}",
            "name": self.name,
            "location": self.location,
            "home": health["home"],
            "version": health["version"],
        }

    def get_mlflow_tracking_uri(self, with_auth: bool = True) -> str:
        """For ``mlflow.set_tracking_uri``: the yard listens there, on this machine alone.

        The stock client finds the token in MLFLOW_TRACKING_TOKEN, which is set here, for this process.
        """
        address = self.connection.post("/api/studio", {})
        if with_auth:
            os.environ["MLFLOW_TRACKING_TOKEN"] = address["token"]
        return str(address["url"]).rstrip("/")

    @property
    def home(self) -> Path:
        return self.connection.home

    @property
    def experiments(self) -> Named[Experiment]:
        from runyard.sdk.core.experiment import Experiment

        return Named((e["name"], Experiment(self, e["name"])) for e in self.connection.get("/api/experiments"))

    @property
    def compute_targets(self) -> Named[ComputeTarget]:
        from runyard.sdk.compute.target import ComputeTarget

        return Named((target.name, target) for target in ComputeTarget.list(self))

    @property
    def datastores(self) -> Named[AbstractDatastore]:
        from runyard.sdk.data.datastore import all_of

        return Named((store.name, store) for store in all_of(self))

    def get_default_datastore(self) -> AbstractDatastore:
        """Where data goes when nobody says where: a folder in the yard's home, until another one is the default."""
        from runyard.sdk.data.datastore import default_of

        return default_of(self)

    def set_default_datastore(self, name: str) -> None:
        from runyard.sdk.data.datastore import get

        get(self, name).set_as_default()

    @property
    def environments(self) -> Named[Environment]:
        from runyard.sdk.environment.environment import Environment

        return Named(Environment.list(self).items())

    @property
    def models(self) -> Named[Model]:
        """The latest version of each."""
        from runyard.sdk.model.model import Model

        return Named((model.name, model) for model in Model.list(self, latest=True))

    @property
    def webservices(self) -> Named[Webservice]:
        from runyard.sdk.webservice.webservice import Webservice

        return Named((service.name, service) for service in Webservice.list(self))

    @property
    def images(self) -> Named[Image]:
        """The newest version of each."""
        from runyard.sdk.model.image import Image

        return Named((image.name, image) for image in Image.list(self))

    @property
    def datasets(self) -> Named[AbstractDataset]:
        """Those that are registered, each in its newest version."""
        from runyard.sdk.data.base import AbstractDataset

        return Named(AbstractDataset.get_all(self).items())

    def __repr__(self) -> str:
        return (
            f"Workspace.create(name={self.name!r}, subscription_id={self.subscription_id!r}, "
            f"resource_group={self.resource_group!r})"
        )

    def _repr_html_(self) -> str:
        from runyard.sdk.core.display import table_html

        names = list(self.experiments)[::-1]  # the newest first
        shown = ", ".join(names[:20]) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
        return table_html({"Workspace": self.name, "Home": self.home, "Experiments": shown or "none yet"})


class Named(dict[str, V]):
    """A dict by name that can also be called: in the SDK's first releases these were methods."""

    def __init__(self, items: Iterator[tuple[str, V]] | Any = ()) -> None:
        super().__init__(items)

    def __call__(self) -> Named[V]:
        return self


def _find_config(start: Path, file_name: str | None = None) -> Path | None:
    if start.is_file():
        return start
    named = (f".azureml/{file_name}", f"aml_config/{file_name}", file_name) if file_name else (*_PLACES, *_BARE)
    for folder in (start, *start.parents):
        for place in named:
            # a bare config.json is everybody's name for a file: only one that says what it is counts
            if (folder / place).is_file() and (place not in _BARE or _names_a_workspace(folder / place)):
                return folder / place
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
            f"{path} cannot be read: {error}", hint="ws.write_config() writes a good one"
        ) from error
    if isinstance(content, dict) and "Scope" in content:
        parts = str(content["Scope"]).strip("/").split("/")
        named = dict(zip((part.lower() for part in parts[::2]), parts[1::2]))
        content = {
            "subscription_id": named.get("subscriptions"),
            "resource_group": named.get("resourcegroups"),
            "workspace_name": named.get("workspaces"),
        }
    wanted = ("subscription_id", "resource_group", "workspace_name")
    missing = [key for key in wanted if not isinstance(content, dict) or not content.get(key)]
    if missing:
        raise UserErrorException(
            f"{os.fspath(path)} lacks {', '.join(missing)}",
            hint=f"it needs {', '.join(wanted)}; any text will do: they are names to print",
        )
    return str(content[wanted[0]]), str(content[wanted[1]]), str(content[wanted[2]])
