"""An environment on a host: built there, by what was sent there."""

from __future__ import annotations

import json
import platform
import threading
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from runyard.compute.ssh.framing import Cut
from runyard.compute.ssh.host import Host
from runyard.compute.ssh.placeholders import HOST_FOLDER
from runyard.errors import ComputeTargetException


def prepare_on(
    host: Host,
    asked: dict[str, Any],
    uv: Path | None,
    files: Sequence[Path],
    say: Callable[[str], None],
    abandoned: threading.Event,
    patience_s: float,
) -> dict[str, Any]:
    """The host's answer, with its folder as ``HOST_FOLDER``."""
    host.call("lacking", digests=[], patience_s=patience_s)  # reached, or the reason why not
    folder = str(host.facts["folder"])
    text = json.dumps(asked)
    try:
        for path in files:
            digest = digest_of(path)
            _bring(host, {digest: path}, f"{path.name} goes to {host.name}", say)
            there = host.call("place_file", digest=digest, name=path.name)
            text = text.replace(json.dumps(str(path))[1:-1], json.dumps(there)[1:-1])
        digest = ""
        if uv is not None and host.facts["machine"] == platform.machine():
            digest = _known_digest(uv, uv.stat().st_mtime_ns)
            _bring(host, {digest: uv}, f"uv, which builds environments, goes to {host.name}", say)
    except Cut as cut:
        raise ComputeTargetException(f"the connection to {host.name} was lost: {cut}", passing=True) from cut
    request = {
        **json.loads(text),
        "has_gpu": bool(host.capacity.gpus),
        "run_folder": f"{host.facts['home']}/runs/{asked['run_id']}",
        "kit": f"{folder}/{host.facts['parts'][1]}",
    }

    def heard(head: dict[str, Any], body: bytes) -> None:
        say(str(head["say"]))

    answer = host.call(
        "prepare", request=request, uv=digest, heard=heard, timeout_s=None, patience_s=patience_s, abandoned=abandoned
    )
    found: dict[str, Any] = json.loads(json.dumps(answer).replace(json.dumps(folder)[1:-1], HOST_FOLDER))
    return found


def digest_of(path: Path) -> str:
    seen = sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            seen.update(data)
    return seen.hexdigest()


def _bring(host: Host, contents: dict[str, Path], text: str, say: Callable[[str], None]) -> None:
    if host.call("lacking", digests=list(contents)):
        say(text)
        host.bring(contents)


@cache
def _known_digest(path: Path, changed_ns: int) -> str:
    return digest_of(path)
