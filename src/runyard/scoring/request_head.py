"""The head of a request, read strictly: what two programs could read differently is refused."""

from __future__ import annotations

import re
from typing import Optional
from urllib.parse import unquote

LONGEST = 32 * 1024
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(rb"[!-~]+")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class Refused(Exception):
    """A request that is answered without being looked at further."""

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
        given = headers.get("x-request-id", "")
        self.request_id = given if given and _REQUEST_ID.fullmatch(given) else ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        self.token: Optional[str] = token.strip() if scheme.lower() == "bearer" else None


def parse(data: bytes) -> Head:
    """Without the empty line at its end. Raises Refused."""
    lines = data.split(b"\r\n")
    words = lines[0].split(b" ")
    if len(words) != 3 or not _NAME.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise Refused(400, "the request line is not one of HTTP/1.1")
    if words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Refused(505, "this service speaks HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise Refused(400, "a header line is not one of HTTP/1.1")
        text = value.strip(b" \t").decode("latin-1")
        if "\n" in text or "\r" in text or "\0" in text:
            raise Refused(400, "a header holds a character that it may not")
        key = name.decode("ascii").lower()
        if key in headers:
            if key in ("content-length", "transfer-encoding", "host", "authorization"):
                raise Refused(400, f"the header {key} was sent twice")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    target = words[1].decode("ascii")
    if "://" in target.partition("?")[0]:  # the form for proxies: everything before the path is who was called
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    return Head(words[0].decode("ascii"), target, headers, words[2] == b"HTTP/1.0")


def _length(headers: dict[str, str]) -> tuple[int, bool]:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if length is not None:  # of two lengths, two programs would each believe another
            raise Refused(400, "a request has either a content-length or a transfer-encoding")
        if coding.lower() != "chunked":
            raise Refused(501, "the only transfer-encoding here is chunked")
        return 0, True
    if length is None:
        return 0, False
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise Refused(400, "content-length must be a number")
    return int(length), False
