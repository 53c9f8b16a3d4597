"""Files on web servers as a read-only datastore: the path of a file is its URL."""

from __future__ import annotations

import hashlib
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

from runyard import __version__, clock
from runyard.data.base import (
    BytesCallback,
    DataStore,
    FileChanged,
    StoredFile,
    StoreUnreachable,
    raise_if_canceled,
    unlink_quietly,
)
from runyard.errors import DataException, UserErrorException

NAME = ""  # of this datastore among the registered ones
_TIMEOUT_S = 60.0
_CHUNK_BYTES = 1 << 20


class HttpStore(DataStore):
    """``cached_file`` looks up a previous download of a URL, which is used while the server does not respond."""

    kind = "web"

    def __init__(self, cached_file: Callable[[str], StoredFile | None] = lambda url: None) -> None:
        self._cached_file = cached_file

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Yield the file at this URL: web servers cannot list folders."""
        stored = self.head(prefix)
        if stored is not None:
            yield stored

    def head(self, path: str) -> StoredFile | None:
        try:
            return self._request_metadata(path)
        except StoreUnreachable:
            cached = self._cached_file(path)
            if cached is None:
                raise
            return cached

    def get(self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> str:
        hashing, total = hashlib.sha256(), 0
        try:
            with _request(stored.path, "GET") as response, open(draft, "wb") as out:
                if _etag(response) not in ("", stored.etag):
                    raise FileChanged(f"{stored.path} was replaced since it was looked up", hint="try again")
                while chunk := response.read(_CHUNK_BYTES):
                    raise_if_canceled(canceled)
                    out.write(chunk)
                    hashing.update(chunk)
                    total += len(chunk)
                    on_progress(len(chunk))
            expected = response.headers.get("Content-Length")
            if expected is not None and int(expected) != total:
                raise StoreUnreachable(f"{stored.path} was cut off after {total:,} of {int(expected):,} bytes")
        except _HttpError as error:
            unlink_quietly(draft)
            raise error.translate() from None
        except BaseException:
            unlink_quietly(draft)
            on_progress(-total)
            raise
        return hashing.hexdigest()

    def put(
        self, path: str, source: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> tuple[StoredFile, str]:
        raise UserErrorException(f"cannot write to {path}: files on the web are read-only")

    def delete(self, path: str) -> None:
        raise UserErrorException(f"cannot delete {path}: files on the web are read-only")

    def _request_metadata(self, path: str) -> StoredFile | None:
        for method in ("HEAD", "GET"):  # some servers do not support HEAD
            try:
                with _request(path, method) as response:
                    return _stored_file(path, response)
            except _HttpError as error:
                if error.code in (404, 410):
                    return None
                if method == "GET":
                    raise error.translate() from None
        return None


class _HttpError(Exception):
    def __init__(self, url: str, code: int, reason: str) -> None:
        self.url, self.code, self.reason = url, code, reason

    def translate(self) -> DataException:
        kind = StoreUnreachable if self.code >= 500 or self.code in (408, 429) else DataException
        return kind(f"the server refused {self.url}: {self.code} {self.reason}")


@contextmanager
def _request(url: str, method: str) -> Iterator[Any]:
    headers = {"User-Agent": f"runyard/{__version__}", "Accept-Encoding": "identity"}
    if not url.startswith(("http://", "https://")):  # urllib would also read local files
        raise UserErrorException(f"{url!r} is not a web URL", hint="use http:// or https://")
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method, headers=headers), timeout=_TIMEOUT_S
        ) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise _HttpError(url, error.code, str(error.reason)) from None
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise StoreUnreachable(
            f"{url} cannot be reached: {reason}", hint="check that the server is up and this machine has network access"
        ) from None
    except ValueError as error:
        raise UserErrorException(f"{url!r} is not a valid URL: {error}") from None


def _stored_file(url: str, response: HTTPResponse) -> StoredFile:
    modified = response.headers.get("Last-Modified")
    try:
        modified_at = parsedate_to_datetime(modified).timestamp() if modified else 0.0
    except (TypeError, ValueError):
        modified_at = 0.0
    size = int(response.headers.get("Content-Length") or 0)
    # without version headers the file may differ on every request, so its etag must never match a recorded one
    return StoredFile(url, size, _etag(response) or f"at {clock.now()}", modified_at)


def _etag(response: HTTPResponse) -> str:
    tag, modified = response.headers.get("ETag"), response.headers.get("Last-Modified")
    return f"{tag or ''} {modified or ''} {response.headers.get('Content-Length') or ''}" if tag or modified else ""
