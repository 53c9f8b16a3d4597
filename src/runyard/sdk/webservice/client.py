"""Sends one request to a service with the standard library."""

from __future__ import annotations

import json
from typing import Any, Optional
from urllib.parse import urlsplit

from runyard.errors import WebserviceException

_GRACE_S = 10.0  # added to the service's own timeout, so that its error message arrives


def call(uri: str, input: Any, key: Optional[str], timeout_s: float) -> Any:
    """Return the JSON of the response. Raises WebserviceException for every status other than 200."""
    import http.client

    address = urlsplit(uri)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout_s + _GRACE_S)
    try:
        connection.request("POST", address.path, _body(input), headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {uri} does not respond: {error or type(error).__name__}",
            hint="service.get_logs() may show the reason",
        ) from error
    finally:
        connection.close()
    text = content.decode("utf-8", "replace")
    if response.status != 200:
        raise WebserviceException(
            f"the service returned status {response.status}: {_message(text)}",
            hint=f"request {response.headers.get('x-request-id', '')}: service.get_logs() may show more",
            status_code=response.status,
        )
    try:
        return json.loads(text)
    except ValueError as error:
        raise WebserviceException(f"the service returned invalid JSON: {text[:500]}") from error


def _body(input: Any) -> bytes:
    if isinstance(input, (bytes, bytearray)):
        return bytes(input)
    return (input if isinstance(input, str) else json.dumps(input)).encode("utf-8")


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
