"""Forwards one request to a service on behalf of a user who is signed in to the yard."""

from __future__ import annotations

import http.client
import json
from typing import Any

from runyard import clock
from runyard.errors import WebserviceException
from runyard.serving.supervisor_client import SupervisorClient

_MAX_RESPONSE_BYTES = 16 * 1024 * 1024


def invoke(supervisor: SupervisorClient, body: str) -> dict[str, Any]:
    config = supervisor.desired_state()
    if config is None:
        raise WebserviceException("the service is not ready yet", hint="`runyard services list` shows its state")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    connection = http.client.HTTPConnection(host, config.port, timeout=config.limits.timeout_s + 10)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {config.keys[0]}"}
    started_at = clock.monotonic()
    try:
        connection.request("POST", "/score", body.encode("utf-8", "surrogatepass"), headers)
        response = connection.getresponse()
        text = response.read(_MAX_RESPONSE_BYTES).decode("utf-8", "replace")
        seconds = clock.monotonic() - started_at
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        return {
            "status": response.status,
            "text": text,
            "json": value,
            "ms": round(seconds * 1e3, 3),
            "request_id": response.getheader("X-Request-Id", ""),
            "version": response.getheader("X-Runyard-Version", ""),
        }
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"no response from the service at {host}:{config.port}: {error}", hint="its log may have the reason"
        ) from error
    finally:
        connection.close()
