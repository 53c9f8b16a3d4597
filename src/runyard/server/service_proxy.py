"""One request to a service, for somebody who is signed in to the yard."""

from __future__ import annotations

import http.client
import json
from typing import Any

from runyard import clock
from runyard.errors import WebserviceException
from runyard.serving.supervisor_client import Keeping

_LONGEST_ANSWER = 16 * 1024 * 1024


def call(keeping: Keeping, body: str) -> dict[str, Any]:
    wanted = keeping.wanted()
    if wanted is None:
        raise WebserviceException("the service does not serve yet", hint="runyard services list shows how it stands")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(wanted.host, wanted.host)
    connection = http.client.HTTPConnection(host, wanted.port, timeout=wanted.limits.timeout_s + 10)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {wanted.keys[0]}"}
    began = clock.monotonic()
    try:
        connection.request("POST", "/score", body.encode("utf-8", "surrogatepass"), headers)
        answer = connection.getresponse()
        text = answer.read(_LONGEST_ANSWER).decode("utf-8", "replace")
        seconds = clock.monotonic() - began
        found = {name.lower(): value for name, value in answer.getheaders()}
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        return {
            "status": answer.status,
            "text": text,
            "json": value,
            "ms": round(seconds * 1e3, 3),
            "request_id": found.get("x-request-id", ""),
            "version": found.get("x-runyard-version", ""),
        }
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {host}:{wanted.port} does not answer: {error}", hint="its log may say why"
        ) from error
    finally:
        connection.close()
