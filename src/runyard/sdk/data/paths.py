"""What people give as the path of a dataset: parts of datastores, addresses, or lists of them."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Any, Optional
from urllib.parse import urlsplit

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.spec.dataset import Source

_TAKES = "(datastore, 'folder/'), an address such as 'https://…', or a list of them"


def sources_of(path: Any) -> tuple[tuple[Source, ...], Optional[Any]]:
    """The sources, and the workspace of their datastores."""
    if _is_pair(path) or not isinstance(path, (list, tuple)):
        given: list[Any] = [path]
    else:
        given = list(path)
    if not given:
        raise validation.wrong("path", path, f"{_TAKES}; it is empty", error=UserErrorException)
    workspace, found = None, []
    for item in given:
        sources, store = _sources(item)
        workspace = workspace or getattr(store, "workspace", None)
        found += sources
    return tuple(dict.fromkeys(found)), workspace


def target_of(target: Any) -> tuple[Any, str]:
    """Where to write: a datastore, or a folder of one."""
    if _is_store(target):
        return target, ""
    if _is_pair(target):
        return target[0], _below(target[1])
    store, path = _of_reference(target)
    if store is None:
        raise validation.wrong("target", target, "a datastore or (datastore, 'folder/')", error=UserErrorException)
    return store, _below(path)


def _sources(item: Any) -> tuple[list[Source], Optional[Any]]:
    if isinstance(item, (str, os.PathLike)):
        return [Source(url=_address(os.fspath(item)))], None
    if _is_store(item):
        return [Source(item.name)], item
    if _is_pair(item):
        store, paths = item
        return [Source(store.name, _below(one)) for one in (paths if isinstance(paths, list) else [paths])], store
    store, path = _of_reference(item)
    if store is None:
        raise validation.wrong("path", item, _TAKES, error=UserErrorException)
    return [Source(store.name, _below(path))], store


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname:
        return text
    if parts.scheme and len(parts.scheme) > 1:
        raise UserErrorException(
            f"{text!r} cannot be read: {parts.scheme}: is not an address that datasets know",
            hint="http and https are read as they are; a blob store is a datastore: give (datastore, path)",
        )
    raise UserErrorException(
        f"{text!r} is a path on this machine; a dataset is made of files in datastores, or of addresses",
        hint="Dataset.File.upload_directory('./data', (ws.get_default_datastore(), 'data')) brings it there, or "
        "Datastore.register_folder(…) makes a datastore of the folder as it is",
    )


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and _is_store(item[0])


def _is_store(item: Any) -> bool:
    return not isinstance(item, (str, tuple, list)) and hasattr(item, "upload_files") and hasattr(item, "workspace")


def _of_reference(item: Any) -> tuple[Any, str]:
    """A DataReference or a DataPath."""
    store = getattr(item, "datastore", None) or getattr(item, "_datastore", None)
    path = getattr(item, "path_on_datastore", None)
    return (store, path or "") if store is not None and _is_store(store) else (None, "")


def _below(path: Any) -> str:
    """As a path below the datastore's root; a slash at its end says that it is a folder."""
    text = validation.path("path", path, error=UserErrorException) or ""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UserErrorException(f"the path {text!r} leads out of its datastore", hint="leave '..' out")
    return str(PurePosixPath(*parts)) + ("/" if text.endswith("/") else "") if parts else ""
