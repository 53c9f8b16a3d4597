"""One request to a service, by the standard library."""

from __future__ import annotations

import json
from typing import Any, Optional
from urllib.parse import urlsplit

from runyard.errors import WebserviceException

_MORE_S = 10.0  # than the service has itself, so that its own words arrive


def call(uri: str, input: Any, key: Optional[str], timeout_s: float) -> Any:
    """The answer's JSON. WebserviceException for everything that is not a 200."""
    import http.client

    where = urlsplit(uri)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout_s + _MORE_S)
    try:
        connection.request("POST", where.path, _body(input), headers)
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise WebserviceException(
            f"the service at {uri} does not answer: {error or type(error).__name__}",
            hint="service.get_logs() may say why",
        ) from error
    finally:
        connection.close()
    text = content.decode("utf-8", "replace")
    if answer.status != 200:
        raise WebserviceException(
            f"the service answered {answer.status}: {_message(text)}",
            hint=f"request {answer.headers.get('x-request-id', '')}: service.get_logs() may say more",
            status_code=answer.status,
        )
    try:
        return json.loads(text)
    except ValueError as error:
        raise WebserviceException(f"the service answered with what is not JSON: {text[:500]}") from error


def _body(input: Any) -> bytes:
    if isinstance(input, (bytes, bytearray)):
        return bytes(input)
    return (input if isinstance(input, str) else json.dumps(input)).encode("utf-8")


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
