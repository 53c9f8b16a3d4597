"""The supported datastore backends: their configuration, their credentials, and a factory for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.data.base import DataStore
from runyard.data.folder_store import FolderStore
from runyard.data.object_store import ObjectStore
from runyard.errors import UserErrorException

FOLDER, S3, GCS, AZURE_BLOB, AZURE_LAKE = "folder", "s3", "gcs", "azure_blob", "azure_data_lake_gen2"


@dataclass(frozen=True)
class Backend:
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()  # stored in a file that only its owner can read; never in a response
    environment: Mapping[str, str] | None = None  # credential -> variable of the yard, used if none is registered


BACKENDS: dict[str, Backend] = {
    FOLDER: Backend(("path",)),
    S3: Backend(
        ("bucket",),
        ("region", "endpoint", "prefix", "anonymous"),
        ("access_key_id", "secret_access_key", "session_token"),
        {
            "access_key_id": "AWS_ACCESS_KEY_ID",
            "secret_access_key": "AWS_SECRET_ACCESS_KEY",
            "session_token": "AWS_SESSION_TOKEN",
        },
    ),
    GCS: Backend(
        ("bucket",),
        ("prefix", "anonymous", "endpoint"),
        ("service_account_key",),
        {"service_account_path": "GOOGLE_APPLICATION_CREDENTIALS"},
    ),
    AZURE_BLOB: Backend(
        ("container_name", "account_name"),
        ("protocol", "endpoint", "prefix", "anonymous"),
        ("account_key", "sas_token"),
        {"account_key": "AZURE_STORAGE_ACCOUNT_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"},
    ),
    AZURE_LAKE: Backend(
        ("filesystem", "account_name"),
        ("protocol", "endpoint", "prefix"),
        ("tenant_id", "client_id", "client_secret"),
        {
            "tenant_id": "AZURE_TENANT_ID",
            "client_id": "AZURE_CLIENT_ID",
            "client_secret": "AZURE_CLIENT_SECRET",
        },
    ),
}


def split_credentials(kind: str, configuration: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Validate a configuration and split it into the public part and the credentials."""
    backend = BACKENDS.get(kind)
    if backend is None:
        raise UserErrorException(f"unknown datastore kind {kind!r}", hint=f"kinds: {', '.join(BACKENDS)}")
    public = {name: value for name, value in configuration.items() if value is not None and value != ""}
    missing = [name for name in backend.required if name not in public]
    if missing:
        raise UserErrorException(f"a datastore of kind {kind!r} needs {', '.join(missing)}")
    allowed = (*backend.required, *backend.optional, *backend.secret)
    unknown = sorted(set(public) - set(allowed))
    if unknown:
        raise UserErrorException(
            f"a datastore of kind {kind!r} does not accept {', '.join(unknown)}",
            hint=f"it accepts {', '.join(allowed)}",
        )
    if kind == FOLDER:
        public["path"] = str(_check_folder(str(public["path"])))
    secrets = {name: str(public.pop(name)) for name in backend.secret if name in public}
    return public, secrets


def open_store(name: str, kind: str, public: Mapping[str, Any], secrets: Mapping[str, str]) -> DataStore:
    if kind == FOLDER:
        return FolderStore(Path(public["path"]))
    credentials = dict(secrets)
    if not credentials and not public.get("anonymous"):
        variables = BACKENDS[kind].environment or {}
        credentials = {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}
    redacted = tuple(value.lstrip("?") for value in credentials.values())
    connect = _client_factory(kind, public, credentials)
    return ObjectStore(name, kind, connect, str(public.get("prefix", "")), redacted)


def _client_factory(kind: str, public: Mapping[str, Any], credentials: Mapping[str, str]) -> Callable[[], Any]:
    config: dict[str, Any] = dict(credentials)
    class_name, container = _CONFIGURE[kind](public, config)
    if public.get("anonymous"):
        config["skip_signature"] = True

    def connect() -> Any:
        import obstore.store

        return getattr(obstore.store, class_name)(container, config=config, **_client_options())

    return connect


def _configure_s3(public: Mapping[str, Any], config: dict[str, Any]) -> tuple[str, str]:
    config["region"] = public.get("region") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    if public.get("endpoint"):
        config["endpoint"] = public["endpoint"]
    return "S3Store", public["bucket"]


def _configure_gcs(public: Mapping[str, Any], config: dict[str, Any]) -> tuple[str, str]:
    if "service_account_path" in config:
        config["service_account"] = config.pop("service_account_path")
    if public.get("endpoint"):
        config["base_url"] = public["endpoint"]
    return "GCSStore", public["bucket"]


def _configure_azure(public: Mapping[str, Any], config: dict[str, Any]) -> tuple[str, str]:
    config.update(account_name=public["account_name"], endpoint=_azure_endpoint(public))
    if "sas_token" in config:
        config["sas_key"] = config.pop("sas_token").lstrip("?")
    return "AzureStore", public.get("container_name") or public["filesystem"]


# each adds to the client's configuration and returns the name of the client class and of the bucket or container
_CONFIGURE: dict[str, Callable[[Mapping[str, Any], dict[str, Any]], tuple[str, str]]] = {
    S3: _configure_s3,
    GCS: _configure_gcs,
    AZURE_BLOB: _configure_azure,
    AZURE_LAKE: _configure_azure,
}


def _azure_endpoint(public: Mapping[str, Any]) -> str:
    """The configured ``endpoint`` is a host name suffix, as in the SDK v1, or a complete URL."""
    endpoint = str(public.get("endpoint") or "core.windows.net")
    if "://" in endpoint:
        return endpoint
    return f"{public.get('protocol') or 'https'}://{public['account_name']}.blob.{endpoint}"


def _client_options() -> dict[str, Any]:
    """Few retries: the caller retries for longer, and reports it."""
    from datetime import timedelta

    # the timeout is long because uploading one part over a slow network is not an error
    options: dict[str, Any] = {"connect_timeout": "10s", "timeout": "300s", "allow_http": True}
    return {
        "client_options": options,
        "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=20)},
    }


def _check_folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_absolute():
        raise UserErrorException(f"the folder of a datastore must be an absolute path, got {path!r}")
    if not folder.is_dir():
        raise UserErrorException(f"the folder {str(folder)!r} does not exist", hint=f"mkdir -p {folder}")
    return folder
