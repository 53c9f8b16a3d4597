"""Files on their way out: whole or in ranges, to be kept or to be looked at, and never run by a browser."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import StreamingResponse

_CHUNK = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")

# What scripts write is anybody's text. Opened by itself, it must be able to do nothing to whoever is signed in.
_HARMLESS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; media-src 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}
_SHOWN = {
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


def sent(path: Path, name: str, *, asked_range: str | None = None, inline: bool = False) -> Response:
    """As long as it is now: a log may grow while it is sent, and an answer that outgrows its length is a broken one."""
    file = open(path, "rb")  # noqa: SIM115  closed by whoever sends it
    size = file.seek(0, 2)
    headers = {**_HARMLESS, "Content-Disposition": _disposition(name, inline)}
    begin, end, status = 0, size, 200
    wanted = _RANGE.fullmatch(asked_range or "")
    if wanted is not None and (wanted[1] or wanted[2]):
        begin, end = _asked(wanted[1], wanted[2], size)
        if begin >= end:
            file.close()
            return Response(status_code=416, headers={"Content-Range": f"bytes */{size}"})
        status = 206
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - begin)
    file.seek(begin)
    kind = shown_as(name) if inline else "application/octet-stream"
    return StreamingResponse(_pieces(file, end - begin), status, headers, kind)


def sent_bytes(content: bytes, name: str, *, inline: bool) -> Response:
    headers = {**_HARMLESS, "Content-Disposition": _disposition(name, inline)}
    return Response(content, headers=headers, media_type=shown_as(name) if inline else "application/octet-stream")


def sent_zip(files: Iterable[tuple[str, Path]], name: str) -> Response:
    """Made as it is sent: nothing is written to disk, and a model of any size passes through."""
    headers = {**_HARMLESS, "Content-Disposition": _disposition(name, inline=False)}
    del headers["Accept-Ranges"]
    return StreamingResponse(_zipped(files), headers=headers, media_type="application/zip")


def shown_as(name: str) -> str:
    """Pictures, sounds and films as what they are; everything else is text to a browser, HTML before all."""
    return _SHOWN.get(name.rpartition(".")[2].lower(), "text/plain; charset=utf-8")


def _asked(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


def _disposition(name: str, inline: bool) -> str:
    return f"{'inline' if inline else 'attachment'}; filename*=utf-8''{quote(name, safe='', errors='replace')}"


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    with file:
        while size and (piece := file.read(min(size, _CHUNK))):
            size -= len(piece)
            yield piece


def _zipped(files: Iterable[tuple[str, Path]]) -> Iterator[bytes]:
    pipe = _Pipe()
    # stored: models and pictures are compressed already, and a fast network waits for nobody's packing
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:
        for name, path in files:
            try:
                source = open(path, "rb")  # noqa: SIM115
            except OSError:  # gone meanwhile, as files of a running script may be
                continue
            with source:
                left = path.stat().st_size
                info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=left >= 1 << 31) as target:
                    while left and (piece := source.read(min(left, _CHUNK))):
                        left -= len(piece)
                        target.write(piece)
                        yield from pipe.taken()
    yield from pipe.taken()


class _Pipe:
    """A file that is only written to; what was written is taken out at the other end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """What was written is still to be taken."""

    def taken(self) -> Iterator[bytes]:
        pieces, self._pieces = self._pieces, []
        yield b"".join(pieces)
