"""The kinds of datastores: what each is described by, which of that is a credential, and how it is opened."""

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
class Kind:
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()  # kept in the owner's own file; named in no answer
    environment: Mapping[str, str] | None = None  # credential -> the yard's variable that has it where none is given


KINDS: dict[str, Kind] = {
    FOLDER: Kind(("path",)),
    S3: Kind(
        ("bucket",),
        ("region", "endpoint", "prefix", "anonymous"),
        ("access_key_id", "secret_access_key", "session_token"),
        {
            "access_key_id": "AWS_ACCESS_KEY_ID",
            "secret_access_key": "AWS_SECRET_ACCESS_KEY",
            "session_token": "AWS_SESSION_TOKEN",
        },
    ),
    GCS: Kind(
        ("bucket",),
        ("prefix", "anonymous", "endpoint"),
        ("service_account_key",),
        {"service_account_path": "GOOGLE_APPLICATION_CREDENTIALS"},
    ),
    AZURE_BLOB: Kind(
        ("container_name", "account_name"),
        ("protocol", "endpoint", "prefix", "anonymous"),
        ("account_key", "sas_token"),
        {"account_key": "AZURE_STORAGE_ACCOUNT_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"},
    ),
    AZURE_LAKE: Kind(
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


def split(kind: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What may be shown, and what may not; refused where something is lacking or unknown."""
    known = KINDS.get(kind)
    if known is None:
        raise UserErrorException(f"there is no kind of datastore called {kind!r}", hint=f"kinds: {', '.join(KINDS)}")
    given = {name: value for name, value in given.items() if value is not None and value != ""}
    lacking = [name for name in known.required if name not in given]
    if lacking:
        raise UserErrorException(f"a datastore of kind {kind!r} needs {', '.join(lacking)}")
    takes = (*known.required, *known.optional, *known.secret)
    unknown = sorted(set(given) - set(takes))
    if unknown:
        raise UserErrorException(
            f"a datastore of kind {kind!r} takes no {', '.join(unknown)}", hint=f"it takes {', '.join(takes)}"
        )
    if kind == FOLDER:
        given["path"] = str(_folder(str(given["path"])))
    secrets = {name: str(given.pop(name)) for name in known.secret if name in given}
    return given, secrets


def opened(name: str, kind: str, shown: Mapping[str, Any], secrets: Mapping[str, str]) -> DataStore:
    if kind == FOLDER:
        return FolderStore(Path(shown["path"]))
    credentials = dict(secrets)
    if not credentials and not shown.get("anonymous"):
        found = KINDS[kind].environment or {}
        credentials = {name: os.environ[variable] for name, variable in found.items() if os.environ.get(variable)}
    hidden = tuple(value.lstrip("?") for value in credentials.values())
    return ObjectStore(name, kind, _OPENERS[kind](shown, credentials), str(shown.get("prefix", "")), hidden)


def _s3(shown: Mapping[str, Any], credentials: Mapping[str, str]) -> Callable[[], Any]:
    config: Any = {"region": shown.get("region") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1", **credentials}
    if shown.get("endpoint"):
        config["endpoint"] = shown["endpoint"]
    if shown.get("anonymous"):
        config["skip_signature"] = True

    def make() -> Any:
        from obstore.store import S3Store

        return S3Store(shown["bucket"], config=config, **_manners())

    return make


def _gcs(shown: Mapping[str, Any], credentials: Mapping[str, str]) -> Callable[[], Any]:
    config: Any = dict(credentials)
    if "service_account_path" in config:
        config["service_account"] = config.pop("service_account_path")
    if shown.get("endpoint"):
        config["base_url"] = shown["endpoint"]
    if shown.get("anonymous"):
        config["skip_signature"] = True

    def make() -> Any:
        from obstore.store import GCSStore

        return GCSStore(shown["bucket"], config=config, **_manners())

    return make


def _azure(shown: Mapping[str, Any], credentials: Mapping[str, str]) -> Callable[[], Any]:
    config: Any = {"account_name": shown["account_name"], "endpoint": _azure_address(shown), **credentials}
    if "sas_token" in config:
        config["sas_key"] = config.pop("sas_token").lstrip("?")
    if shown.get("anonymous"):
        config["skip_signature"] = True

    def make() -> Any:
        from obstore.store import AzureStore

        return AzureStore(shown.get("container_name") or shown["filesystem"], config=config, **_manners())

    return make


_OPENERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, str]], Callable[[], Any]]] = {
    S3: _s3,
    GCS: _gcs,
    AZURE_BLOB: _azure,
    AZURE_LAKE: _azure,
}


def _azure_address(shown: Mapping[str, Any]) -> str:
    """``endpoint`` is the end of a host name, as in the SDK v1, or a whole address."""
    endpoint = str(shown.get("endpoint") or "core.windows.net")
    if "://" in endpoint:
        return endpoint
    return f"{shown.get('protocol') or 'https'}://{shown['account_name']}.blob.{endpoint}"


def _manners() -> dict[str, Any]:
    """Short tries: how long to be patient is decided where people are told about it."""
    from datetime import timedelta

    # an upload of one part over a slow line is no reason to give up: what counts is that something moves
    options: dict[str, Any] = {"connect_timeout": "10s", "timeout": "300s", "allow_http": True}
    return {
        "client_options": options,
        "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=20)},
    }


def _folder(path: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_absolute():
        raise UserErrorException(f"the folder {path!r} of a datastore must be named from the root of the file system")
    if not folder.is_dir():
        raise UserErrorException(f"there is no folder {str(folder)!r}", hint=f"mkdir -p {folder}")
    return folder
