"""Strict parser for request heads: ambiguous requests are rejected, because a proxy may read them differently."""

from __future__ import annotations

import re
from typing import Optional
from urllib.parse import unquote

MAX_HEAD_BYTES = 32 * 1024
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(rb"[!-~]+")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class HttpError(Exception):
    """An error response that ends the processing of a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Head:
    __slots__ = (
        "chunked",
        "expects",
        "headers",
        "keep_alive",
        "length",
        "method",
        "path",
        "query",
        "request_id",
        "token",
    )

    def __init__(self, method: str, target: str, headers: dict[str, str], is_old: bool) -> None:
        self.method = method
        path, _, self.query = target.partition("?")
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        connection = headers.get("connection", "").lower()
        self.keep_alive = "keep-alive" in connection if is_old else "close" not in connection
        self.expects = headers.get("expect", "").lower() == "100-continue"
        self.length, self.chunked = _length(headers)
        request_id = headers.get("x-request-id", "")
        self.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        self.token: Optional[str] = token.strip() if scheme.lower() == "bearer" else None


def parse(data: bytes) -> Head:
    """Parse a head without the empty line at its end. Raises HttpError."""
    lines = data.split(b"\r\n")
    words = lines[0].split(b" ")
    if len(words) != 3 or not _NAME.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise HttpError(400, "invalid HTTP/1.1 request line")
    if words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise HttpError(505, "only HTTP/1.1 is supported")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise HttpError(400, "invalid header line")
        text = value.strip(b" \t").decode("latin-1")
        if "\n" in text or "\r" in text or "\0" in text:
            raise HttpError(400, "invalid character in a header")
        key = name.decode("ascii").lower()
        if key in headers:
            if key in ("content-length", "transfer-encoding", "host", "authorization"):
                raise HttpError(400, f"duplicate header {key}")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    target = words[1].decode("ascii")
    if "://" in target.partition("?")[0]:  # absolute form, used with proxies
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    return Head(words[0].decode("ascii"), target, headers, words[2] == b"HTTP/1.0")


def _length(headers: dict[str, str]) -> tuple[int, bool]:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if length is not None:  # two lengths allow request smuggling
            raise HttpError(400, "both content-length and transfer-encoding were sent")
        if coding.lower() != "chunked":
            raise HttpError(501, "only chunked transfer-encoding is supported")
        return 0, True
    if length is None:
        return 0, False
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise HttpError(400, "content-length must be a number")
    return int(length), False
