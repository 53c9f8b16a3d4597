"""HTTP responses of a service."""

from __future__ import annotations

import json
from typing import NamedTuple


class Response(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"
    headers: str = ""  # complete lines, including line ends


def problem(status: int, message: str, request_id: str) -> Response:
    body = json.dumps({"error": {"message": message, "request_id": request_id}}).encode()
    headers = "retry-after: 1\r\n" if status == 503 else "www-authenticate: Bearer\r\n" if status == 401 else ""
    return Response(status, body, "application/json", headers)
