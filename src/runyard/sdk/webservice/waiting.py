"""Waiting for a deployment, with the output that notebooks of the SDK v1 show."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import WebserviceException

if TYPE_CHECKING:
    from runyard.sdk.webservice.webservice import Webservice

_POLL_S = 20.0


def wait(service: Webservice, show_output: bool, timeout_sec: Optional[float]) -> None:
    deadline = None if timeout_sec is None else time.monotonic() + float(timeout_sec)
    phase = ""
    _print(show_output, "Running")
    view = service.workspace.connection.get(f"/api/services/{service.name}")
    while True:
        service._load(view)
        if view["doing"] and view["doing"] != phase:
            phase = view["doing"]
            _print(show_output, f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S+00:00} {phase}")
        if view["state"] != "Transitioning":
            break
        wait_s = _POLL_S if deadline is None else min(_POLL_S, deadline - time.monotonic())
        if wait_s <= 0:
            raise WebserviceException(
                f"the service {service.name!r} is not ready after {timeout_sec:g} s: {phase or 'just started'}",
                hint="service.get_logs() shows the progress; wait_for_deployment() continues to wait",
            )
        view = service.workspace.connection.get(
            f"/api/services/{service.name}", after=view["change"], wait_s=round(wait_s, 2)
        )
    failure = _failure(view)
    outcome = "Failed" if failure else "Succeeded"
    _print(show_output, outcome)
    if service.compute_type == "Local" and not failure:
        _print(show_output, f"Local webservice is running at {service.scoring_uri.rpartition('/')[0]}")
    else:
        kind = service.compute_type
        _print(show_output, f'{kind} service creation operation finished, operation "{outcome}"')
    if failure:
        raise WebserviceException(f"deployment of the service {service.name!r} failed: {failure}")


def _failure(view: dict[str, Any]) -> str:
    """Return the error of the newest version; an older one may still be serving."""
    newest = view["versions"][-1] if view["versions"] else {}
    if view["state"] == "Failed":
        return str(view["error"] or "see its log")
    return str(newest.get("error") or "see its log") if newest.get("state") == "Failed" else ""


def _print(show_output: bool, text: str) -> None:
    if show_output:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
