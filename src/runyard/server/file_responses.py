"""Responses with the content of files: complete or in ranges, as downloads or inline, never executed by a browser."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from fastapi import Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.datastructures import Headers

from runyard.server.security_headers import CONTENT_SECURITY_POLICY, FILE_POLICY
from runyard.tracking.artifacts import FileSource
from runyard.tracking.content_check import StreamCheck, check_content, damage_error, known_result

_CHUNK_BYTES = 1 << 20
_VERIFY_FIRST_BYTES = 32 << 20  # hashed in some hundredths of a second
_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]

_INLINE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "svg": "image/svg+xml",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp4": "video/mp4",
    "webm": "video/webm",
}


def file_response(source: FileSource, name: str, *, inline: bool = False) -> Response:
    """The content of a file, or the ranges of it that the request selects. A stored file is verified."""
    response = _VerifiedFileResponse(source.path, headers=_headers(name, inline), media_type=_media_type(name, inline))
    response.digest, response.shown_name = source.digest, name
    return response


def bytes_response(content: bytes, name: str, *, inline: bool) -> Response:
    return Response(content, headers=_headers(name, inline), media_type=_media_type(name, inline))


def zip_response(files: Sequence[tuple[str, FileSource]], name: str) -> Response:
    """A zip archive that is built while it is sent: it needs no disk space.

    Raises:
        FileCorrupted: A stored file is missing, or known to be damaged. Other damage cuts the archive off.
    """
    for file_name, source in files:
        if source.digest is not None and _known_result(source, file_name) is False:
            raise damage_error(source.path, file_name)
    return StreamingResponse(_zip(files), headers=_headers(name, inline=False), media_type="application/zip")


class _BoundedFileResponse(FileResponse):
    """Sends no more than the announced length: a log may grow while it is sent, which would break the connection."""

    chunk_size = _CHUNK_BYTES

    async def __call__(self, scope: _Message, receive: Callable[[], Awaitable[_Message]], send: _Send) -> None:
        remaining = 0

        async def send_bounded(message: _Message) -> None:
            nonlocal remaining
            if message["type"] == "http.response.start":
                remaining = int(Headers(raw=message["headers"])["content-length"])
            else:
                message["body"] = message["body"][:remaining]
                remaining -= len(message["body"])
            await send(message)

        await super().__call__(scope, receive, send_bounded)


class _VerifiedFileResponse(_BoundedFileResponse):
    """Sends a file with a known hash only if its content has that hash.

    Small files, and files of which a part is requested, are read and verified first, so that damage is answered by an
    error. Large ones are verified while they are sent; the last piece of a damaged one is not sent, so that the client
    notices an incomplete response.
    """

    digest: str | None = None
    shown_name = ""

    async def __call__(self, scope: _Message, receive: Callable[[], Awaitable[_Message]], send: _Send) -> None:
        if self.digest is None:
            await super().__call__(scope, receive, send)
            return
        path = Path(self.path)
        source = FileSource(path, self.digest)
        result = await to_thread.run_sync(_known_result, source, self.shown_name)
        is_small = result is None and path.stat().st_size <= _VERIFY_FIRST_BYTES
        if result is False or is_small or (result is None and "range" in Headers(raw=scope["headers"])):
            await to_thread.run_sync(check_content, path, self.digest, self.shown_name)
            result = True
        if result:
            await super().__call__(scope, receive, send)
            return
        check = StreamCheck(path, self.digest)
        previous: _Message | None = None  # sent when the next one was read

        async def send_verified(message: _Message) -> None:
            nonlocal previous
            if message["type"] != "http.response.body":
                await send(message)
                return
            await to_thread.run_sync(check.update, message["body"])
            if not message.get("more_body", False):
                check.finish(self.shown_name)
            if previous is not None:
                await send(previous)
            previous = message

        await super().__call__(scope, receive, send_verified)
        if previous is not None:
            await send(previous)


def _known_result(source: FileSource, name: str) -> bool | None:
    try:
        return known_result(source.path, source.digest or "")
    except OSError:
        check_content(source.path, source.digest or "", name)
        raise


def _media_type(name: str, inline: bool) -> str:
    """Images, audio and video keep their type; everything else, HTML in particular, is plain text to a browser."""
    if not inline:
        return "application/octet-stream"
    return _INLINE_TYPES.get(name.rpartition(".")[2].lower(), "text/plain; charset=utf-8")


def _headers(name: str, inline: bool) -> dict[str, str]:
    filename = quote(name, safe="", errors="replace")
    return {
        "Cache-Control": "no-cache",  # the files of a live run change
        CONTENT_SECURITY_POLICY: FILE_POLICY,
        "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=utf-8''{filename}",
    }


def _zip(files: Iterable[tuple[str, FileSource]]) -> Iterator[bytes]:
    buffer = _WriteBuffer()
    # stored: models and images are already compressed, and compressing is slower than a fast network
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, source in files:
            try:
                file = open(source.path, "rb")  # noqa: SIM115
            except OSError:  # a running script may have deleted it
                if source.digest is not None:
                    raise
                continue
            with file:
                remaining = os.fstat(file.fileno()).st_size
                check = None if source.digest is None else StreamCheck(source.path, source.digest)
                info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=remaining >= 1 << 31) as target:
                    while remaining and (chunk := file.read(min(remaining, _CHUNK_BYTES))):
                        remaining -= len(chunk)
                        if check is not None:
                            check.update(chunk)
                        target.write(chunk)
                        yield buffer.take()
                if check is not None:
                    check.finish(name)
    yield buffer.take()


class _WriteBuffer:
    """A write-only file object whose content is taken out as it grows."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Required by ZipFile; there is nothing to flush."""

    def close(self) -> None:
        """Required by ZipFile; the content is still to be taken."""

    def take(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)
