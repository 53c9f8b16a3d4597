"""Parses the `path` of a dataset: paths in datastores, URLs, or lists of them."""

from __future__ import annotations

import os
from typing import Any, Optional
from urllib.parse import urlsplit

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.data.reference import normalize_path
from runyard.spec.dataset import Source

_EXPECTED = "(datastore, 'folder/'), a URL such as 'https://…', or a list of them"


def parse_sources(path: Any) -> tuple[tuple[Source, ...], Optional[Any]]:
    """Return the sources and the workspace of their datastores."""
    items = [path] if _is_pair(path) or not isinstance(path, (list, tuple)) else list(path)
    if not items:
        raise validation.invalid("path", path, f"{_EXPECTED}; it is empty", error=UserErrorException)
    workspace, sources = None, []
    for item in items:
        item_sources, store = _sources(item)
        workspace = workspace or getattr(store, "workspace", None)
        sources += item_sources
    return tuple(dict.fromkeys(sources)), workspace


def parse_target(target: Any) -> tuple[Any, str]:
    """Return the datastore and the folder in it to write to."""
    if _is_store(target):
        return target, ""
    if _is_pair(target):
        return target[0], _relative_path(target[1])
    store, path = _split_reference(target)
    if store is None:
        raise validation.invalid("target", target, "a datastore or (datastore, 'folder/')", error=UserErrorException)
    return store, _relative_path(path)


def _sources(item: Any) -> tuple[list[Source], Optional[Any]]:
    if isinstance(item, (str, os.PathLike)):
        return [Source(url=_checked_url(os.fspath(item)))], None
    if _is_store(item):
        return [Source(item.name)], item
    if _is_pair(item):
        store, paths = item
        paths = paths if isinstance(paths, list) else [paths]
        return [Source(store.name, _relative_path(path)) for path in paths], store
    store, path = _split_reference(item)
    if store is None:
        raise validation.invalid("path", item, _EXPECTED, error=UserErrorException)
    return [Source(store.name, _relative_path(path))], store


def _checked_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname:
        return text
    if parts.scheme and len(parts.scheme) > 1:
        raise UserErrorException(
            f"cannot read {text!r}: datasets do not support {parts.scheme}: URLs",
            hint="use http or https; register a blob store as a datastore and pass (datastore, path)",
        )
    raise UserErrorException(
        f"{text!r} is a path on this machine; a dataset consists of files in datastores, or of URLs",
        hint="Dataset.File.upload_directory('./data', (ws.get_default_datastore(), 'data')) uploads it; "
        "Datastore.register_folder(…) makes the folder itself a datastore",
    )


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and _is_store(item[0])


def _is_store(item: Any) -> bool:
    return not isinstance(item, (str, tuple, list)) and hasattr(item, "upload_files") and hasattr(item, "workspace")


def _split_reference(item: Any) -> tuple[Any, str]:
    """Return the datastore and the path of a DataReference or a DataPath."""
    store = getattr(item, "datastore", None) or getattr(item, "_datastore", None)
    path = getattr(item, "path_on_datastore", None)
    return (store, path or "") if store is not None and _is_store(store) else (None, "")


def _relative_path(path: Any) -> str:
    """Return a normalized path that keeps a final slash, which marks a folder."""
    normalized = normalize_path(path)
    return f"{normalized}/" if normalized and os.fspath(path).endswith("/") else normalized
