"""What goes back to a client."""

from __future__ import annotations

import json
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    body: bytes
    kind: str = "application/json"
    headers: str = ""  # lines, each with its end


def problem(status: int, message: str, request_id: str) -> Answer:
    body = json.dumps({"error": {"message": message, "request_id": request_id}}).encode()
    headers = "retry-after: 1\r\n" if status == 503 else "www-authenticate: Bearer\r\n" if status == 401 else ""
    return Answer(status, body, "application/json", headers)
