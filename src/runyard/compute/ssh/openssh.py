"""The system's OpenSSH: how it is called, and what its complaints mean.

The user's own configuration, agent and jump hosts are honoured; what is said here comes on top: no questions, no
unknown host, one connection that all share.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import ComputeTargetException

PROGRAM = "RUNYARD_SSH"  # the command to use instead of `ssh`: "ssh -F my_config"
_CONNECT_S = 10
_ALIVE_S, _ALIVE_COUNT = 5, 3  # a dead connection is given up after this often that long
_PERSIST_S = 60
_LONGEST_SOCKET = 80  # ssh adds 17 characters while it binds, and the system takes 107


@dataclass(frozen=True)
class Address:
    """``user@host`` or ``user@host:port``, or any name in the user's ssh configuration."""

    text: str
    key: str = ""

    @property
    def destination(self) -> str:
        return self._parts()[0]

    @property
    def port(self) -> str:
        return self._parts()[1]

    @property
    def name(self) -> str:
        """As people call the machine."""
        return self.destination.rpartition("@")[2]

    def _parts(self) -> tuple[str, str]:
        found = re.fullmatch(r"(.*[^:\]]|.*\]):(\d+)", self.text)
        if (found and self.text.count(":") == 1) or (found and found[1].endswith("]")):
            return found[1].replace("[", "").replace("]", ""), found[2]
        return self.text, ""


def checked_address(text: str, key: str = "") -> Address:
    address = Address(text, key)
    # a name that begins with a dash would be taken for an option of ssh
    if not re.fullmatch(r"[^\s-][^\s]*", address.destination) or "@-" in address.destination:
        raise ComputeTargetException(
            f"{text!r} is not the address of a host", hint="write it as user@host, or user@host:port"
        )
    if key and not Path(key).expanduser().is_file():
        raise ComputeTargetException(f"there is no key {key}", hint="name the private key's file")
    return address


def command(address: Address, control: Path, words: tuple[str, ...]) -> list[str]:
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(_CONNECT_S),
        "ServerAliveInterval": str(_ALIVE_S),
        "ServerAliveCountMax": str(_ALIVE_COUNT),
        "ControlMaster": "auto",
        "ControlPath": str(control).replace("%", "%%"),
        "ControlPersist": str(_PERSIST_S),
    }
    argv = [*program(), "-T", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    if address.key:
        argv += ["-i", str(Path(address.key).expanduser()), "-o", "IdentitiesOnly=yes"]
    if address.port:
        argv += ["-p", address.port]
    return [*argv, *words[:-1], "--", address.destination, *words[-1:]] if words else argv


def hang_up(address: Address, control: Path, how: str) -> None:
    """``exit`` ends the shared connection: one to a host that went away would keep everybody waiting. ``stop`` lets
    those who use it go on to their end."""
    with suppress(OSError, subprocess.SubprocessError):
        argv = [*program(), "-o", f"ControlPath={str(control).replace('%', '%%')}", "-O", how, "--"]
        subprocess.run([*argv, address.destination], capture_output=True, timeout=3, stdin=subprocess.DEVNULL)
    with suppress(OSError):
        control.unlink()


def control_path(home: Path, address: Address) -> Path:
    """One for each host and key, in a folder that is ours alone, with a name short enough for a socket."""
    name = hashlib.sha256(repr((program(), address.text, address.key)).encode()).hexdigest()[:16]
    folder = home / "ssh"
    if len(os.fsencode(folder / name)) > _LONGEST_SOCKET:
        own = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"runyard-ssh-{os.getuid()}-{own}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise ComputeTargetException(f"{folder} belongs to somebody else", hint="set RUNYARD_HOME to a shorter path")
    return folder / name


def program() -> list[str]:
    return shlex.split(os.environ.get(PROGRAM, "")) or ["ssh"]


def require_program() -> None:
    if shutil.which(program()[0]) is None:
        raise ComputeTargetException(
            f"{program()[0]} is not installed here", hint="install OpenSSH's client (openssh-client)"
        )


def explained(address: Address, said: str) -> ComputeTargetException:
    """What ssh complained about, in one error that names the host and says what to do."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("Warning: Permanently")]
    last = lines[-1] if lines else "ssh ended without a word"
    by_hand = " ".join(["ssh", *(["-p", address.port] if address.port else []), address.destination])
    name = address.name
    if "IDENTIFICATION HAS CHANGED" in said:
        return ComputeTargetException(
            f"{name} answers with another host key than the one that is known: it was set up anew, or it is not {name}",
            hint=f"ask whoever runs it; if the new key is right, ssh-keygen -R {name}, then `{by_hand}` once",
            host=name,
        )
    if "Host key verification failed" in said or "host key is known" in said:
        return ComputeTargetException(
            f"the host key of {name} is not known here",
            hint=f"run `{by_hand}` once, compare the fingerprint that it shows, and answer yes",
            host=name,
        )
    if "Permission denied" in said or "Too many authentication failures" in said:
        with_key = f" with the key {address.key}" if address.key else ""
        problem = next((line for line in lines if line.startswith("Load key")), "")
        return ComputeTargetException(
            f"{name} did not let {address.destination.rpartition('@')[0] or 'this user'} in{with_key}"
            + (f" ({problem})" if problem else f": {last}"),
            hint=f"`{by_hand}` must work without a question; put the public key into ~/.ssh/authorized_keys there",
            host=name,
        )
    unreachable = re.search(
        r"(Connection (?:refused|timed out|reset|closed)|No route to host|Could not resolve hostname|"
        r"Network is unreachable|Operation timed out|Name or service not known|Broken pipe|not responding)",
        said,
    )
    if unreachable:
        return ComputeTargetException(
            f"{name} cannot be reached: {last}",
            hint=f"is it on, and in this network? `{by_hand}` says more",
            host=name,
            passing=True,
        )
    return ComputeTargetException(f"{name}: {last}", hint=f"`{by_hand}` says more", host=name, passing=True)
