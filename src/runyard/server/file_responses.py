"""Responses with the content of files: complete or in ranges, as downloads or inline, never executed by a browser."""

from __future__ import annotations

import zipfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.datastructures import Headers

_CHUNK_BYTES = 1 << 20
_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]

# Scripts write arbitrary content. Opened in a browser, it must not act on behalf of the signed-in user.
_SAFETY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; media-src 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the files of a live run change
}
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


def file_response(path: Path, name: str, *, inline: bool = False) -> Response:
    """The content of a file, or the ranges of it that the request selects."""
    return _BoundedFileResponse(path, headers=_headers(name, inline), media_type=_media_type(name, inline))


def bytes_response(content: bytes, name: str, *, inline: bool) -> Response:
    return Response(content, headers=_headers(name, inline), media_type=_media_type(name, inline))


def zip_response(files: Iterable[tuple[str, Path]], name: str) -> Response:
    """A zip archive that is built while it is sent: it needs no disk space."""
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


def _media_type(name: str, inline: bool) -> str:
    """Images, audio and video keep their type; everything else, HTML in particular, is plain text to a browser."""
    if not inline:
        return "application/octet-stream"
    return _INLINE_TYPES.get(name.rpartition(".")[2].lower(), "text/plain; charset=utf-8")


def _headers(name: str, inline: bool) -> dict[str, str]:
    filename = quote(name, safe="", errors="replace")
    return {
        **_SAFETY_HEADERS,
        "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=utf-8''{filename}",
    }


def _zip(files: Iterable[tuple[str, Path]]) -> Iterator[bytes]:
    buffer = _WriteBuffer()
    # stored: models and images are already compressed, and compressing is slower than a fast network
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, path in files:
            try:
                source = open(path, "rb")  # noqa: SIM115
            except OSError:  # a running script may have deleted it
                continue
            with source:
                remaining = path.stat().st_size
                info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=remaining >= 1 << 31) as target:
                    while remaining and (chunk := source.read(min(remaining, _CHUNK_BYTES))):
                        remaining -= len(chunk)
                        target.write(chunk)
                        yield buffer.take()
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
