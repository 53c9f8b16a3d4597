"""Datastores over the network: S3, Google Cloud Storage and Azure, through one client library."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.data.base import (
    PIECES_SUFFIX,
    BytesCallback,
    DataStore,
    FileChanged,
    StoredFile,
    StoreUnreachable,
    changed_file_error,
    damaged_file_error,
    raise_if_canceled,
    unlink_quietly,
)
from runyard.data.folder_store import digest_of, etag_of
from runyard.data.network_errors import RangeNotSupported, StoreContext, translate_errors

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

DIGEST = "runyard_sha256"  # metadata key of each file; Azure requires a valid C# identifier
_SMALL_BYTES = 8 << 20  # files up to this size are transferred in one request
_PIECE_BYTES = 16 << 20
_PARALLEL_PIECES = 4
_LIST_PAGE = 1000
_MAX_PARTS = 9000  # S3 allows ten thousand parts per upload


class ObjectStore(DataStore):
    """``connect`` creates the client on first use, because the library takes long to import."""

    def __init__(
        self, name: str, kind: str, connect: Callable[[], Client], prefix: str, secrets: tuple[str, ...]
    ) -> None:
        self.kind = kind
        self._connect, self._prefix = connect, prefix.strip("/")
        self._context = StoreContext(name, kind, secrets)
        self._connected: Client | None = None
        self._lock = threading.Lock()

    @property
    def _client(self) -> Any:
        with self._lock:
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        with translate_errors(self._context, prefix):
            for page in self._client.list(self._key(prefix) or None, chunk_size=_LIST_PAGE):
                for metadata in page:
                    if not str(metadata["path"]).endswith("/"):  # some tools mark folders by an empty file
                        yield self._stored_file(metadata)
        single_file = self.head(prefix) if prefix else None
        if single_file is not None:
            yield single_file

    def head(self, path: str) -> StoredFile | None:
        with translate_errors(self._context, path), suppress(FileNotFoundError):
            return self._stored_file(self._client.head(self._key(path)))
        return None

    def get(self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event) -> str:
        is_small = stored.size <= _SMALL_BYTES
        if is_small:
            data, expected = self._read(stored, None)
            draft.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
        else:
            try:
                expected = self._get_in_pieces(stored, draft, on_progress, canceled)
            except RangeNotSupported:
                expected = self._get_as_stream(stored, draft, on_progress, canceled)
            digest = digest_of(draft, canceled)[0]
        if expected and expected != digest:
            unlink_quietly(draft)
            on_progress(0 if is_small else -stored.size)
            raise damaged_file_error(self._context.name, stored, digest, expected)
        on_progress(stored.size if is_small else 0)
        return digest

    def put(
        self, path: str, source: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> tuple[StoredFile, str]:
        status = source.stat()
        with translate_errors(self._context, path, writes=True):
            if status.st_size <= _SMALL_BYTES:
                data = source.read_bytes()
                if etag_of(source.stat()) != etag_of(status) or len(data) != status.st_size:
                    raise changed_file_error(source)
                digest = hashlib.sha256(data).hexdigest()
                raise_if_canceled(canceled)
                result = self._client.put(self._key(path), data, attributes={DIGEST: digest}, use_multipart=False)
                on_progress(len(data))
            else:
                digest, etag = digest_of(source, canceled)
                result = self._client.put(
                    self._key(path),
                    _read_verified(source, digest, etag, on_progress, canceled),
                    attributes={DIGEST: digest},
                    chunk_size=max(_PIECE_BYTES // 2, status.st_size // _MAX_PARTS),
                    max_concurrency=_PARALLEL_PIECES,
                )
        return StoredFile(path, status.st_size, _unquote(result.get("e_tag")), status.st_mtime), digest

    def delete(self, path: str) -> None:
        with translate_errors(self._context, path), suppress(FileNotFoundError):
            self._client.delete(self._key(path))

    def stored_digest(self, stored: StoredFile) -> str | None:
        with translate_errors(self._context, stored.path):
            response = self._client.get(self._key(stored.path), options={"head": True})
            digest = response.attributes.get(DIGEST) if _is_version(response, stored) else None
        return str(digest) if digest else None

    def _open(self, stored: StoredFile, span: tuple[int, int] | None = None) -> tuple[Any, str]:
        """Request a version of a file, or a span of it; return the response and the digest in its metadata ("": none).

        The response is checked as well: some servers ignore the condition of the request.
        """
        options: dict[str, Any] = {"if_match": f'"{stored.etag}"'} if stored.etag else {}
        if span is not None:
            options["range"] = span
        response = self._client.get(self._key(stored.path), options=options)
        if not _is_version(response, stored):
            raise changed_file_error(stored.path)
        return response, str(response.attributes.get(DIGEST, ""))

    def _read(self, stored: StoredFile, span: tuple[int, int] | None) -> tuple[bytes, str]:
        with translate_errors(self._context, stored.path):
            response, digest = self._open(stored, span)
            data = bytes(response.bytes())
        self._check_size(stored, len(data), stored.size if span is None else span[1] - span[0])
        return data, digest

    def _get_in_pieces(
        self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> str:
        """Download several pieces in parallel; return the digest in the file's metadata.

        Completed pieces are recorded in a file next to the draft, so that an interrupted download can resume.
        """
        record = draft.with_name(draft.name + PIECES_SUFFIX)
        spans = [(start, min(start + _PIECE_BYTES, stored.size)) for start in range(0, stored.size, _PIECE_BYTES)]
        complete = _completed_pieces(record, stored) if draft.exists() else set()
        counted = sum(spans[n][1] - spans[n][0] for n in complete)
        expected = ""
        on_progress(counted)
        lock, failed = threading.Lock(), threading.Event()
        file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        def download_piece(number: int) -> None:
            nonlocal counted, expected
            if failed.is_set():
                return
            start, end = spans[number]
            try:
                raise_if_canceled(canceled)
                data, expected = self._read(stored, (start, end))
                _write_at(file, data, start)
            except BaseException:
                failed.set()
                raise
            with lock:
                record_file.write(f"{number}\n")
                record_file.flush()
                counted += end - start
            on_progress(end - start)

        try:
            os.ftruncate(file, stored.size)
            with (
                open(record, "w", encoding="utf-8") as record_file,
                ThreadPoolExecutor(_PARALLEL_PIECES, "piece") as pool,
            ):
                record_file.write(f"{stored.etag}\n" + "".join(f"{n}\n" for n in sorted(complete)))
                record_file.flush()
                for future in [pool.submit(download_piece, n) for n in range(len(spans)) if n not in complete]:
                    future.result()
        except BaseException as error:
            on_progress(-counted)  # a resumed download counts them again
            if isinstance(error, (FileChanged, RangeNotSupported)):
                unlink_quietly(record)
                unlink_quietly(draft)
            raise
        finally:
            os.close(file)
        unlink_quietly(record)
        return expected

    def _get_as_stream(
        self, stored: StoredFile, draft: Path, on_progress: BytesCallback, canceled: threading.Event
    ) -> str:
        """Download from a server that does not support byte ranges."""
        total = 0
        try:
            with translate_errors(self._context, stored.path), open(draft, "wb") as file:
                response, expected = self._open(stored)
                for data in response.stream(min_chunk_size=_SMALL_BYTES):
                    raise_if_canceled(canceled)
                    file.write(data)
                    total += len(data)
                    on_progress(len(data))
            self._check_size(stored, total, stored.size)
        except BaseException:
            on_progress(-total)
            raise
        return expected

    def _check_size(self, stored: StoredFile, actual: int, expected: int) -> None:
        if actual != expected:
            raise StoreUnreachable(f"{self._context.name}: received {actual} of {expected} bytes of {stored.path}")

    def _key(self, path: str) -> str:
        return "/".join(part for part in (self._prefix, path) if part)

    def _stored_file(self, metadata: Any) -> StoredFile:
        key = str(metadata["path"])
        path = key[len(self._prefix) + 1 :] if self._prefix else key
        return StoredFile(
            path, int(metadata["size"]), _unquote(metadata["e_tag"]), metadata["last_modified"].timestamp()
        )


def _is_version(response: Any, stored: StoredFile) -> bool:
    metadata = response.meta
    return metadata["size"] == stored.size and (not stored.etag or _unquote(metadata["e_tag"]) == stored.etag)


def _read_verified(
    source: Path, digest: str, etag: str, on_progress: BytesCallback, canceled: threading.Event
) -> Iterator[bytes]:
    """Yield the file's content and check that it is what was hashed.

    The error comes before the multipart upload is completed, so a modified file does not appear in the datastore.
    """
    hashing, total = hashlib.sha256(), 0
    try:
        with open(source, "rb") as file:
            while data := file.read(_SMALL_BYTES):
                raise_if_canceled(canceled)
                hashing.update(data)
                yield data
                total += len(data)
                on_progress(len(data))
            if hashing.hexdigest() != digest or etag_of(os.fstat(file.fileno())) != etag:
                raise changed_file_error(source)
    except BaseException:
        on_progress(-total)
        raise


def _write_at(file: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, offset)
        rest, offset = rest[written:], offset + written


def _completed_pieces(record: Path, stored: StoredFile) -> set[int]:
    try:
        etag, *numbers = record.read_text(encoding="utf-8").split("\n")
    except OSError:
        return set()
    # without the last line, which may be incomplete
    return {int(n) for n in numbers[:-1] if n.isdigit()} if etag == stored.etag else set()


def _unquote(tag: Any) -> str:
    """Remove the quotes that responses have around a tag, and listings do not."""
    return str(tag or "").removeprefix("W/").strip('"')
