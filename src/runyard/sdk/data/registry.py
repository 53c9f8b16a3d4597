"""Datastore: registering datastores and finding them, in the words of the SDK v1 and a few more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.data import datastore as kinds
from runyard.sdk.data.datastore import AbstractDatastore

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

_NOT_A_CLOUD = "a yard knows no subscriptions; credentials are all that it needs"


class Datastore:
    """``Datastore(ws)`` is the default one, ``Datastore(ws, name)`` that of the name; both are what ``get`` gives.

    Credentials go to a file of the yard that only its owner can read; without any, those in the yard's environment
    (AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_KEY, GOOGLE_APPLICATION_CREDENTIALS, …) are used.
    """

    def __new__(cls, workspace: Workspace, name: Optional[str] = None) -> Any:
        return kinds.default_of(workspace) if name is None else kinds.get(workspace, name)

    @staticmethod
    def get(workspace: Workspace, datastore_name: str) -> AbstractDatastore:
        return kinds.get(workspace, validation.text("datastore_name", datastore_name, error=UserErrorException) or "-")

    @staticmethod
    def get_default(workspace: Workspace) -> AbstractDatastore:
        return kinds.default_of(workspace)

    @staticmethod
    def register_folder(
        workspace: Workspace, datastore_name: str, path: Any, overwrite: bool = False
    ) -> AbstractDatastore:
        """A folder of this machine: a disk with data, or a share that is mounted."""
        from pathlib import Path

        folder = Path(validation.path("path", path, error=UserErrorException) or "").expanduser().absolute()
        return _registered(workspace, datastore_name, "folder", {"path": str(folder)}, overwrite=overwrite)

    @staticmethod
    def register_s3(
        workspace: Workspace,
        datastore_name: str,
        bucket: str,
        access_key_id: Optional[str] = None,
        secret_access_key: Optional[str] = None,
        session_token: Optional[str] = None,
        region: Optional[str] = None,
        endpoint: Optional[str] = None,
        prefix: Optional[str] = None,
        anonymous: bool = False,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> AbstractDatastore:
        """A bucket of S3, or of whatever speaks its language at ``endpoint``. ``prefix``: only what is below it."""
        given = {
            "bucket": bucket,
            "access_key_id": access_key_id,
            "secret_access_key": secret_access_key,
            "session_token": session_token,
            "region": region,
            "endpoint": endpoint,
            "prefix": prefix,
            "anonymous": anonymous or None,
        }
        return _registered(workspace, datastore_name, "s3", given, overwrite=overwrite, unseen=skip_validation)

    @staticmethod
    def register_gcs(
        workspace: Workspace,
        datastore_name: str,
        bucket: str,
        service_account_key: Optional[str] = None,
        prefix: Optional[str] = None,
        anonymous: bool = False,
        endpoint: Optional[str] = None,
        overwrite: bool = False,
        skip_validation: bool = False,
    ) -> AbstractDatastore:
        """A bucket of Google Cloud Storage; ``service_account_key`` is the JSON text of a service account's key."""
        given = {
            "bucket": bucket,
            "service_account_key": service_account_key,
            "prefix": prefix,
            "anonymous": anonymous or None,
            "endpoint": endpoint,
        }
        return _registered(workspace, datastore_name, "gcs", given, overwrite=overwrite, unseen=skip_validation)

    @staticmethod
    def register_azure_blob_container(
        workspace: Workspace,
        datastore_name: str,
        container_name: str,
        account_name: str,
        sas_token: Optional[str] = None,
        account_key: Optional[str] = None,
        protocol: Optional[str] = None,
        endpoint: Optional[str] = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
        blob_cache_timeout: Optional[int] = None,
        grant_workspace_access: bool = False,
        subscription_id: Optional[str] = None,
        resource_group: Optional[str] = None,
    ) -> AbstractDatastore:
        """``endpoint`` is the end of the host name, or a whole address such as that of an emulator."""
        owner = "Datastore.register_azure_blob_container"
        no_effect.told(
            owner, "create_if_not_exists", create_if_not_exists or None, "containers are made where they are"
        )
        no_effect.told(
            owner, "blob_cache_timeout", blob_cache_timeout, "the cache is by content, and never out of date"
        )
        no_effect.told(owner, "grant_workspace_access", grant_workspace_access or None, _NOT_A_CLOUD)
        no_effect.told(owner, "subscription_id", subscription_id, _NOT_A_CLOUD)
        no_effect.told(owner, "resource_group", resource_group, _NOT_A_CLOUD)
        given = {
            "container_name": container_name,
            "account_name": account_name,
            "sas_token": sas_token,
            "account_key": account_key,
            "protocol": protocol,
            "endpoint": endpoint,
        }
        return _registered(workspace, datastore_name, "azure_blob", given, overwrite=overwrite, unseen=skip_validation)

    @staticmethod
    def register_azure_data_lake_gen2(
        workspace: Workspace,
        datastore_name: str,
        filesystem: str,
        account_name: str,
        tenant_id: Optional[str] = None,
        client_id: Optional[str] = None,
        client_secret: Optional[str] = None,
        resource_url: Optional[str] = None,
        authority_url: Optional[str] = None,
        protocol: Optional[str] = None,
        endpoint: Optional[str] = None,
        overwrite: bool = False,
        subscription_id: Optional[str] = None,
        resource_group: Optional[str] = None,
        grant_workspace_access: bool = False,
    ) -> AbstractDatastore:
        owner = "Datastore.register_azure_data_lake_gen2"
        for name, value in (("resource_url", resource_url), ("authority_url", authority_url)):
            no_effect.told(owner, name, value, "the public cloud's own is used")
        for name, value in (("subscription_id", subscription_id), ("resource_group", resource_group)):
            no_effect.told(owner, name, value, _NOT_A_CLOUD)
        no_effect.told(owner, "grant_workspace_access", grant_workspace_access or None, _NOT_A_CLOUD)
        given = {
            "filesystem": filesystem,
            "account_name": account_name,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "client_secret": client_secret,
            "protocol": protocol,
            "endpoint": endpoint,
        }
        return _registered(workspace, datastore_name, "azure_data_lake_gen2", given, overwrite=overwrite)

    @staticmethod
    def register_azure_file_share(
        workspace: Workspace,
        datastore_name: str,
        file_share_name: str,
        account_name: str,
        sas_token: Optional[str] = None,
        account_key: Optional[str] = None,
        protocol: Optional[str] = None,
        endpoint: Optional[str] = None,
        overwrite: bool = False,
        create_if_not_exists: bool = False,
        skip_validation: bool = False,
    ) -> AbstractDatastore:
        raise _unknown("Azure file shares", f"mount {file_share_name!r} on this machine, and register_folder its place")

    @staticmethod
    def register_azure_data_lake(
        workspace: Workspace, datastore_name: str, *args: Any, **rest: Any
    ) -> AbstractDatastore:
        raise _unknown("data lakes of the first generation, which are switched off", "register_azure_data_lake_gen2")

    @staticmethod
    def register_azure_sql_database(
        workspace: Workspace, datastore_name: str, *args: Any, **rest: Any
    ) -> AbstractDatastore:
        raise _unknown("databases", "read them in the script, or export tables to files and upload those")

    register_azure_postgre_sql = register_azure_my_sql = register_azure_sql_database

    @staticmethod
    def register_dbfs(workspace: Workspace, datastore_name: str) -> AbstractDatastore:
        raise _unknown("the file system of Databricks", "register the blob store behind it")

    @staticmethod
    def register_hdfs(workspace: Workspace, datastore_name: str, *args: Any, **rest: Any) -> AbstractDatastore:
        raise _unknown("HDFS", "mount it on this machine, and register_folder its place")


def _registered(
    workspace: Workspace,
    name: str,
    kind: str,
    given: dict[str, Any],
    *,
    overwrite: bool,
    unseen: bool = False,
) -> AbstractDatastore:
    validation.text("datastore_name", name, error=UserErrorException)
    for key, value in given.items():
        if key != "anonymous":
            validation.text(key, value, error=UserErrorException)
    body = {
        "name": name,
        "kind": kind,
        "configuration": {key: value for key, value in given.items() if value is not None},
        "overwrite": overwrite,
        "skip_validation": unseen,
    }
    return kinds.of_view(workspace, workspace.connection.post("/api/datastores", body))


def _unknown(what: str, hint: str) -> UserErrorException:
    return UserErrorException(f"{what} cannot be datastores here", hint=hint)
