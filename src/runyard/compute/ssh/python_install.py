"""Installs a Python on a host that has none: a copy of the yard's own, if the host has the same platform.

The host needs a shell and `tar`. The interpreter and its standard library are sent; the C libraries are the host's.
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

_EXCLUDED = {"test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "turtledemo", "__pycache__"}
_TIMEOUT_S = 600
# tested before it gets its final name: later connections would find and use one that does not start
_INSTALL = (
    "set -e; mkdir -p .runyard-host; cd .runyard-host; half=python.half.$$; mkdir $half; tar -xzf - -C $half; "
    '$half/bin/python3 -c "import ctypes, fcntl, hashlib, json, select, socket, subprocess, zlib"; '
    "test -d python || mv $half python; rm -rf $half"
)
_HINT = "install python3 on the host; one in the user's PATH is enough"


def install_python(address: Address, control: Path, platform: str) -> None:
    """``platform`` is the output of `uname -sm` on the host."""
    problem = f"{address.name} ({platform}) has no Python 3.9 or newer"
    yard_platform = f"{os.uname().sysname} {os.uname().machine}"
    if platform != yard_platform:
        raise ComputeTargetException(f"{problem}, and the yard's own is for {yard_platform}", hint=_HINT)
    try:
        result = subprocess.run(
            command(address, control, (f"exec sh -c '{_INSTALL}'",)),
            input=_archive(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ComputeTargetException(
            f"{problem}, and the yard's own could not be copied there in {_TIMEOUT_S} s", hint=_HINT
        ) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else "no error message"
        raise ComputeTargetException(f"{problem}, and the yard's own does not run there: {reason}", hint=_HINT)


@cache
def _archive() -> bytes:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = Path(os.__file__).resolve().parent
    binary = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3, dereference=True) as tar:
        tar.add(binary, "bin/python3")
        tar.add(library, f"lib/{version}", filter=_filter)
    return packed.getvalue()


def _filter(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = member.name.split("/")
    if _EXCLUDED & set(parts) or any(part.startswith("config-") for part in parts):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
