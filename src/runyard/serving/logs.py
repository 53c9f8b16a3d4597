"""The last lines of a service's logs, read from their ends: they may be long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runyard.spec.service import ServiceFolder

_CHUNK = 256 * 1024
_MOST = 64 * 1024 * 1024


def last_lines(folder: ServiceFolder, count: int) -> str:
    """How it was deployed, then what its scripts said."""
    deployed, said = _tail(folder.deploy_log, count), _tail(folder.service_log, count)
    return "\n".join([*deployed, *said][-count:] if count > 0 else [])


def last_requests(folder: ServiceFolder, count: int) -> list[dict[str, Any]]:
    found = []
    for line in reversed(_tail(folder.request_log, count)):
        try:
            found.append(json.loads(line))
        except ValueError:  # half a line, of a disk that was full
            continue
    return found


def _tail(path: Path, count: int) -> list[str]:
    if count <= 0:
        return []
    try:
        with open(path, "rb") as file:
            place, data = file.seek(0, 2), b""
            while place > 0 and data.count(b"\n") <= count and len(data) < _MOST:
                size = min(_CHUNK, place)
                place -= size
                file.seek(place)
                data = file.read(size) + data
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-count:]
