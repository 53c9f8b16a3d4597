"""A Python for a host that has none: the yard's own, where the host is a machine of the same kind.

It needs a shell and `tar` there. The interpreter and its standard library are sent; the C libraries are the host's own.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

from runyard.compute.ssh.openssh import Address, command
from runyard.errors import ComputeTargetException

_LEFT_OUT = {"test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "turtledemo", "__pycache__"}
_SEND_S = 600
# tried before it gets its name: one that does not start there would be found again by every connection
_TAKE = (
    "set -e; mkdir -p .runyard-host; cd .runyard-host; half=python.half.$$; mkdir $half; tar -xzf - -C $half; "
    '$half/bin/python3 -c "import ctypes, fcntl, hashlib, json, select, socket, subprocess, zlib"; '
    "test -d python || mv $half python; rm -rf $half"
)
_HINT = "install python3 there; a user's own on PATH is enough"


def lend_python(address: Address, control: Path, platform: str) -> None:
    """``platform`` as the host's `uname -sm` says it."""
    lacking = f"{address.name} ({platform}) has no Python 3.9 or newer"
    mine = f"{os.uname().sysname} {os.uname().machine}"
    if platform != mine:
        raise ComputeTargetException(f"{lacking}, and the yard's own is for {mine}", hint=_HINT)
    try:
        done = subprocess.run(
            command(address, control, (f"exec sh -c '{_TAKE}'",)),
            input=_archive(),
            capture_output=True,
            timeout=_SEND_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ComputeTargetException(
            f"{lacking}, and the yard's own did not arrive there in {_SEND_S} s", hint=_HINT
        ) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ComputeTargetException(
            f"{lacking}, and the yard's own does not run there: {said[-1] if said else 'no reason given'}", hint=_HINT
        )


@cache
def _archive() -> bytes:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = Path(os.__file__).resolve().parent
    binary = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3, dereference=True) as tar:
        tar.add(binary, "bin/python3")
        tar.add(library, f"lib/{version}", filter=_wanted)
    return packed.getvalue()


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = member.name.split("/")
    if _LEFT_OUT & set(parts) or any(part.startswith("config-") for part in parts):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
