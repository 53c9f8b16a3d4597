"""Last lines of a service's logs, read from the end because the files may be large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runyard.spec.service import ServiceFolder

_CHUNK = 256 * 1024
_MAX_BYTES = 64 * 1024 * 1024


def last_lines(folder: ServiceFolder, count: int) -> str:
    """The deployment log followed by the output of the scoring scripts."""
    lines = [*_tail(folder.deploy_log, count), *_tail(folder.service_log, count)]
    return "\n".join(lines[-count:] if count > 0 else [])


def last_requests(folder: ServiceFolder, count: int) -> list[dict[str, Any]]:
    requests = []
    for line in reversed(_tail(folder.request_log, count)):
        try:
            requests.append(json.loads(line))
        except ValueError:  # a partial line, written when the disk was full
            continue
    return requests


def _tail(path: Path, count: int) -> list[str]:
    if count <= 0:
        return []
    try:
        with open(path, "rb") as file:
            position, data = file.seek(0, 2), b""
            while position > 0 and data.count(b"\n") <= count and len(data) < _MAX_BYTES:
                size = min(_CHUNK, position)
                position -= size
                file.seek(position)
                data = file.read(size) + data
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-count:]
