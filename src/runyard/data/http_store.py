"""Files of the web as a datastore that can only be read: the path of a file is its address."""

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
from runyard.data.base import Changed, DataStore, Moved, Stored, Unreachable, drop, stop_if
from runyard.errors import DataException, UserErrorException

WEB = ""  # the name of this datastore among the others
_PATIENCE_S = 60.0
_CHUNK = 1 << 20


class Web(DataStore):
    """``kept`` is what was brought of an address before: it stands in while its server does not answer."""

    kind = "web"

    def __init__(self, kept: Callable[[str], Stored | None] = lambda url: None) -> None:
        self._kept = kept

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """An address has nothing below it that could be listed."""
        found = self.head(prefix)
        if found is not None:
            yield found

    def head(self, path: str) -> Stored | None:
        try:
            return self._asked_for(path)
        except Unreachable:
            kept = self._kept(path)
            if kept is None:
                raise
            return kept

    def get(self, stored: Stored, half: Path, moved: Moved, abandoned: threading.Event) -> str:
        hashing, total = hashlib.sha256(), 0
        try:
            with _asked(stored.path, "GET") as response, open(half, "wb") as out:
                if _mark(response) not in ("", stored.mark):
                    raise Changed(f"{stored.path} is another file than it was a moment ago", hint="try again")
                while piece := response.read(_CHUNK):
                    stop_if(abandoned)
                    out.write(piece)
                    hashing.update(piece)
                    total += len(piece)
                    moved(len(piece))
            promised = response.headers.get("Content-Length")
            if promised is not None and int(promised) != total:
                raise Unreachable(f"{stored.path} broke off after {total:,} of {int(promised):,} bytes")
        except _Refused as error:
            drop(half)
            raise error.explained() from None
        except BaseException:
            drop(half)
            moved(-total)
            raise
        return hashing.hexdigest()

    def put(self, path: str, source: Path, moved: Moved, abandoned: threading.Event) -> tuple[Stored, str]:
        raise UserErrorException(f"nothing can be written to {path}: it is read from the web")

    def delete(self, path: str) -> None:
        raise UserErrorException(f"{path} cannot be deleted: it is read from the web")

    def _asked_for(self, path: str) -> Stored | None:
        for method in ("HEAD", "GET"):  # some servers know no HEAD
            try:
                with _asked(path, method) as response:
                    return _stored(path, response)
            except _Refused as error:
                if error.code in (404, 410):
                    return None
                if method == "GET":
                    raise error.explained() from None
        return None


class _Refused(Exception):
    def __init__(self, url: str, code: int, reason: str) -> None:
        self.url, self.code, self.reason = url, code, reason

    def explained(self) -> DataException:
        kind = Unreachable if self.code >= 500 or self.code in (408, 429) else DataException
        return kind(f"{self.url} is not given out: {self.code} {self.reason}")


@contextmanager
def _asked(url: str, method: str) -> Iterator[Any]:
    headers = {"User-Agent": f"runyard/{__version__}", "Accept-Encoding": "identity"}
    if not url.startswith(("http://", "https://")):  # urllib would read files of this machine, too
        raise UserErrorException(f"{url!r} is not an address of the web", hint="http:// or https://")
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method, headers=headers), timeout=_PATIENCE_S
        ) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise _Refused(url, error.code, str(error.reason)) from None
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(
            f"{url} cannot be reached: {reason}", hint="is its server up, and may this machine reach the network?"
        ) from None
    except ValueError as error:
        raise UserErrorException(f"{url!r} is not an address: {error}") from None


def _stored(url: str, response: HTTPResponse) -> Stored:
    modified = response.headers.get("Last-Modified")
    try:
        at = parsedate_to_datetime(modified).timestamp() if modified else 0.0
    except (TypeError, ValueError):
        at = 0.0
    size = int(response.headers.get("Content-Length") or 0)
    # a server that says nothing of versions gives another file each time, for all that can be known
    return Stored(url, size, _mark(response) or f"at {clock.now()}", at)


def _mark(response: HTTPResponse) -> str:
    tag, modified = response.headers.get("ETag"), response.headers.get("Last-Modified")
    return f"{tag or ''} {modified or ''} {response.headers.get('Content-Length') or ''}" if tag or modified else ""
