"""Waiting for a service, with the words that notebooks of the SDK v1 show."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import WebserviceException

if TYPE_CHECKING:
    from runyard.sdk.webservice.webservice import Webservice

_LONGEST_S = 20.0


def wait(service: Webservice, show_output: bool, timeout_sec: Optional[float]) -> None:
    deadline = None if timeout_sec is None else time.monotonic() + float(timeout_sec)
    said = ""
    _print(show_output, "Running")
    view = service.workspace.connection.get(f"/api/services/{service.name}")
    while True:
        service._load(view)
        if view["doing"] and view["doing"] != said:
            said = view["doing"]
            _print(show_output, f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S+00:00} {said}")
        if view["state"] != "Transitioning":
            break
        left = _LONGEST_S if deadline is None else min(_LONGEST_S, deadline - time.monotonic())
        if left <= 0:
            raise WebserviceException(
                f"the service {service.name!r} does not serve after {timeout_sec:g} s: {said or 'it has just begun'}",
                hint="service.get_logs() says how far it is; wait_for_deployment() waits further",
            )
        view = service.workspace.connection.get(
            f"/api/services/{service.name}", after=view["change"], wait_s=round(left, 2)
        )
    failed = _failure(view)
    word = "Failed" if failed else "Succeeded"
    _print(show_output, word)
    if service.compute_type == "Local" and not failed:
        _print(show_output, f"Local webservice is running at {service.scoring_uri.rpartition('/')[0]}")
    else:
        kind = service.compute_type
        _print(show_output, f'{kind} service creation operation finished, operation "{word}"')
    if failed:
        raise WebserviceException(f"the service {service.name!r} could not be deployed: {failed}")


def _failure(view: dict[str, Any]) -> str:
    """Of the newest version: an old one may go on serving."""
    newest = view["versions"][-1] if view["versions"] else {}
    if view["state"] == "Failed":
        return str(view["error"] or "see its log")
    return str(newest.get("error") or "see its log") if newest.get("state") == "Failed" else ""


def _print(wanted: bool, text: str) -> None:
    if wanted:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
