"""Calls the system's OpenSSH client and explains its errors.

The user's configuration, agent and jump hosts apply. In addition: no prompts, no unknown host keys, and one shared
connection per host.
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
_ALIVE_S, _ALIVE_COUNT = 5, 3  # a connection is dead after this many unanswered probes at this interval
_PERSIST_S = 60
_MAX_SOCKET_PATH = 80  # ssh appends 17 characters while it binds, and the kernel's limit is 107


@dataclass(frozen=True)
class Address:
    """``user@host``, ``user@host:port``, or a name in the user's ssh configuration."""

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
        """The host name, for messages."""
        return self.destination.rpartition("@")[2]

    def _parts(self) -> tuple[str, str]:
        match = re.fullmatch(r"(.*[^:\]]|.*\]):(\d+)", self.text)
        if match and (self.text.count(":") == 1 or match[1].endswith("]")):
            return match[1].replace("[", "").replace("]", ""), match[2]
        return self.text, ""


def checked_address(text: str, key: str = "") -> Address:
    address = Address(text, key)
    # ssh would parse a name that begins with a dash as an option
    if not re.fullmatch(r"[^\s-][^\s]*", address.destination) or "@-" in address.destination:
        raise ComputeTargetException(
            f"{text!r} is not the address of a host", hint="write it as user@host, or user@host:port"
        )
    if key and not Path(key).expanduser().is_file():
        raise ComputeTargetException(f"key file {key} not found", hint="give the path of the private key")
    return address


def command(address: Address, control: Path, arguments: tuple[str, ...]) -> list[str]:
    """The ssh command line; the last argument is the command for the host."""
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
    return [*argv, *arguments[:-1], "--", address.destination, *arguments[-1:]] if arguments else argv


def close_shared_connection(address: Address, control: Path, how: str) -> None:
    """End the connection that sessions share.

    Args:
        address: The host.
        control: The connection's control socket.
        how: "exit" ends it immediately, because one to a host that went away would block every later session;
            "stop" lets the sessions that use it finish.
    """
    with suppress(OSError, subprocess.SubprocessError):
        argv = [*program(), "-o", f"ControlPath={str(control).replace('%', '%%')}", "-O", how, "--"]
        subprocess.run([*argv, address.destination], capture_output=True, timeout=3, stdin=subprocess.DEVNULL)
    with suppress(OSError):
        control.unlink()


def control_path(home: Path, address: Address) -> Path:
    """The control socket for a host and key: in a private folder, with a path short enough for a socket."""
    name = hashlib.sha256(repr((program(), address.text, address.key)).encode()).hexdigest()[:16]
    folder = home / "ssh"
    if len(os.fsencode(folder / name)) > _MAX_SOCKET_PATH:
        home_hash = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"runyard-ssh-{os.getuid()}-{home_hash}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise ComputeTargetException(f"{folder} belongs to another user", hint="set RUNYARD_HOME to a shorter path")
    return folder / name


def program() -> list[str]:
    return shlex.split(os.environ.get(PROGRAM, "")) or ["ssh"]


def require_program() -> None:
    if shutil.which(program()[0]) is None:
        raise ComputeTargetException(f"{program()[0]} is not installed here", hint="install openssh-client")


def explain(address: Address, stderr: str) -> ComputeTargetException:
    """Turn ssh's output into an error that names the host and the next step."""
    lines = [line.strip() for line in stderr.splitlines()]
    lines = [line for line in lines if line and not line.startswith("Warning: Permanently")]
    last = lines[-1] if lines else "ssh ended without a message"
    by_hand = " ".join(["ssh", *(["-p", address.port] if address.port else []), address.destination])
    name = address.name
    if "IDENTIFICATION HAS CHANGED" in stderr:
        return ComputeTargetException(
            f"the host key of {name} has changed: the host was reinstalled, or it is not {name}",
            hint=f"ask its administrator; if the new key is right, ssh-keygen -R {name}, then run `{by_hand}` once",
            host=name,
        )
    if "Host key verification failed" in stderr or "host key is known" in stderr:
        return ComputeTargetException(
            f"the host key of {name} is not known here",
            hint=f"run `{by_hand}` once, compare the fingerprint that it shows, and answer yes",
            host=name,
        )
    if "Permission denied" in stderr or "Too many authentication failures" in stderr:
        user = address.destination.rpartition("@")[0] or "this user"
        with_key = f" with the key {address.key}" if address.key else ""
        key_problem = next((line for line in lines if line.startswith("Load key")), "")
        return ComputeTargetException(
            f"{name} refused the login of {user}{with_key}" + (f" ({key_problem})" if key_problem else f": {last}"),
            hint=f"`{by_hand}` must work without a prompt; add the public key to ~/.ssh/authorized_keys there",
            host=name,
        )
    unreachable = re.search(
        r"(Connection (?:refused|timed out|reset|closed)|No route to host|Could not resolve hostname|"
        r"Network is unreachable|Operation timed out|Name or service not known|Broken pipe|not responding)",
        stderr,
    )
    if unreachable:
        return ComputeTargetException(
            f"{name} cannot be reached: {last}",
            hint=f"is it on, and in this network? `{by_hand}` shows more",
            host=name,
            transient=True,
        )
    return ComputeTargetException(f"{name}: {last}", hint=f"`{by_hand}` shows more", host=name, transient=True)
