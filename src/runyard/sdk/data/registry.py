"""Registration and lookup of datastores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation
from runyard.sdk.data.datastore import AbstractDatastore, datastore_from_view

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace

_DATASTORES = "/api/datastores"
_DEFAULT = "-"  # the API's name for the default datastore
_NO_SUBSCRIPTION = "a yard has no subscriptions; credentials are all that it needs"


class Datastore:
    """``Datastore(ws)`` returns the default datastore, ``Datastore(ws, name)`` the one of that name.

    The yard stores credentials in a file that only its owner can read. Without credentials, it uses those in its
    environment (AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_KEY, GOOGLE_APPLICATION_CREDENTIALS, …).

    The ``register_*`` methods return the registered datastore. They fail if the name exists, unless ``overwrite`` is
    True, and if the yard cannot reach the storage, unless ``skip_validation`` is True.
    """

    def __new__(cls, workspace: Workspace, name: Optional[str] = None) -> Any:
        return Datastore.get(workspace, _DEFAULT if name is None else name)

    @staticmethod
    def get(workspace: Workspace, datastore_name: str) -> AbstractDatastore:
        """Return a datastore by name."""
        name = validation.text("datastore_name", datastore_name, error=UserErrorException) or _DEFAULT
        return datastore_from_view(workspace, workspace.connection.get(f"{_DATASTORES}/{name}"))

    @staticmethod
    def get_default(workspace: Workspace) -> AbstractDatastore:
        """Return the default datastore of the workspace."""
        return Datastore.get(workspace, _DEFAULT)

    @staticmethod
    def register_folder(
        workspace: Workspace, datastore_name: str, path: Any, overwrite: bool = False
    ) -> AbstractDatastore:
        """Register a folder of this machine, for example a data disk or a mounted share."""
        from pathlib import Path

        folder = Path(validation.path("path", path, error=UserErrorException) or "").expanduser().absolute()
        return _register(workspace, datastore_name, "folder", {"path": str(folder)}, overwrite=overwrite)

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
        """Register a bucket of S3, or of a compatible service at ``endpoint``.

        Args:
            bucket: Name of the bucket.
            region: Region of the bucket.
            endpoint: URL of a service other than AWS.
            prefix: Folder of the bucket that becomes the root of the datastore.
            anonymous: Read a public bucket without credentials.
        """
        configuration = {
            "bucket": bucket,
            "access_key_id": access_key_id,
            "secret_access_key": secret_access_key,
            "session_token": session_token,
            "region": region,
            "endpoint": endpoint,
            "prefix": prefix,
            "anonymous": anonymous or None,
        }
        return _register(
            workspace, datastore_name, "s3", configuration, overwrite=overwrite, skip_validation=skip_validation
        )

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
        """Register a bucket of Google Cloud Storage.

        Args:
            bucket: Name of the bucket.
            service_account_key: JSON text of a service account's key.
            prefix: Folder of the bucket that becomes the root of the datastore.
            anonymous: Read a public bucket without credentials.
            endpoint: URL of a compatible service.
        """
        configuration = {
            "bucket": bucket,
            "service_account_key": service_account_key,
            "prefix": prefix,
            "anonymous": anonymous or None,
            "endpoint": endpoint,
        }
        return _register(
            workspace, datastore_name, "gcs", configuration, overwrite=overwrite, skip_validation=skip_validation
        )

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
        """Register a container of Azure Blob Storage.

        Args:
            container_name: Name of the container, which must exist.
            account_name: Name of the storage account.
            sas_token: Shared access signature; excludes ``account_key``.
            account_key: Key of the storage account.
            endpoint: Suffix of the host name, or a complete URL such as that of an emulator.
        """
        for argument, value, reason in (
            ("create_if_not_exists", create_if_not_exists or None, "the yard does not create containers"),
            ("blob_cache_timeout", blob_cache_timeout, "the cache is addressed by content and never stale"),
            ("grant_workspace_access", grant_workspace_access or None, _NO_SUBSCRIPTION),
            ("subscription_id", subscription_id, _NO_SUBSCRIPTION),
            ("resource_group", resource_group, _NO_SUBSCRIPTION),
        ):
            no_effect.warn_ignored("Datastore.register_azure_blob_container", argument, value, reason)
        configuration = {
            "container_name": container_name,
            "account_name": account_name,
            "sas_token": sas_token,
            "account_key": account_key,
            "protocol": protocol,
            "endpoint": endpoint,
        }
        return _register(
            workspace, datastore_name, "azure_blob", configuration, overwrite=overwrite, skip_validation=skip_validation
        )

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
        """Register a file system of Azure Data Lake Storage Gen2, accessed with a service principal."""
        for argument, value, reason in (
            ("resource_url", resource_url, "the URL of the public cloud is used"),
            ("authority_url", authority_url, "the URL of the public cloud is used"),
            ("subscription_id", subscription_id, _NO_SUBSCRIPTION),
            ("resource_group", resource_group, _NO_SUBSCRIPTION),
            ("grant_workspace_access", grant_workspace_access or None, _NO_SUBSCRIPTION),
        ):
            no_effect.warn_ignored("Datastore.register_azure_data_lake_gen2", argument, value, reason)
        configuration = {
            "filesystem": filesystem,
            "account_name": account_name,
            "tenant_id": tenant_id,
            "client_id": client_id,
            "client_secret": client_secret,
            "protocol": protocol,
            "endpoint": endpoint,
        }
        return _register(workspace, datastore_name, "azure_data_lake_gen2", configuration, overwrite=overwrite)

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
        hint = f"mount {file_share_name!r} on this machine and register its path with register_folder"
        raise _unsupported("Azure file shares", hint)

    @staticmethod
    def register_azure_data_lake(
        workspace: Workspace, datastore_name: str, *args: Any, **rest: Any
    ) -> AbstractDatastore:
        raise _unsupported("data lakes of the first generation, which are retired,", "register_azure_data_lake_gen2")

    @staticmethod
    def register_azure_sql_database(
        workspace: Workspace, datastore_name: str, *args: Any, **rest: Any
    ) -> AbstractDatastore:
        raise _unsupported("databases", "read them in the script, or export tables to files and upload those")

    register_azure_postgre_sql = register_azure_my_sql = register_azure_sql_database

    @staticmethod
    def register_dbfs(workspace: Workspace, datastore_name: str) -> AbstractDatastore:
        raise _unsupported("Databricks file systems", "register the blob store behind it")

    @staticmethod
    def register_hdfs(workspace: Workspace, datastore_name: str, *args: Any, **rest: Any) -> AbstractDatastore:
        raise _unsupported("HDFS paths", "mount HDFS on this machine and register its path with register_folder")


def list_datastores(workspace: Workspace) -> list[AbstractDatastore]:
    return [datastore_from_view(workspace, view) for view in workspace.connection.get(_DATASTORES)]


def _register(
    workspace: Workspace,
    name: str,
    kind: str,
    configuration: dict[str, Any],
    *,
    overwrite: bool,
    skip_validation: bool = False,
) -> AbstractDatastore:
    validation.text("datastore_name", name, error=UserErrorException)
    for key, value in configuration.items():
        if key != "anonymous":
            validation.text(key, value, error=UserErrorException)
    body = {
        "name": name,
        "kind": kind,
        "configuration": {key: value for key, value in configuration.items() if value is not None},
        "overwrite": overwrite,
        "skip_validation": skip_validation,
    }
    return datastore_from_view(workspace, workspace.connection.post(_DATASTORES, body))


def _unsupported(storage: str, hint: str) -> UserErrorException:
    return UserErrorException(f"{storage} cannot be datastores here", hint=hint)
