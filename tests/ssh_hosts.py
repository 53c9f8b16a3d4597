"""Real SSH hosts on this machine, each with its own network, sshd, host key, name, user and files."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import eventually

INSTALL = Path(__file__).parents[1] / "scripts" / "install-sshd"
USER = "ana"
_FIRST_UID = 21000
_numbers = itertools.count()

_HOST = """
set -eu
hostname "$NAME"
mount --make-rprivate /
mount --bind "$BASE/passwd" /etc/passwd
mount --bind "$BASE/group" /etc/group
mount --bind "$BASE/home" /home
if [ -n "$PYTHONS" ]; then  # below a folder that only root may enter
    mkdir -p "$BASE/pythons"
    mount --bind "$PYTHONS" "$BASE/pythons"
    mount -t tmpfs -o mode=755 none "$CLOSED"
    mkdir -p "$PYTHONS"
    mount --bind "$BASE/pythons" "$PYTHONS"
fi
if [ -n "$OWN_TMP" ]; then
    cp "$BASE/sshd_config" "$BASE/host_key" "$BASE/authorized_keys" /home/
    mount -t tmpfs -o mode=1777 none /tmp
    mount -t tmpfs -o mode=1777 none /dev/shm
fi
echo ready
read go
ip link set lo up
ip address add "$ADDRESS/24" dev "$LINK"
ip link set "$LINK" up
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /home/sshd_config
"""

_SSHD = """
Port 22
ListenAddress {address}
HostKey /home/host_key
AuthorizedKeysFile /home/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin no
PidFile none
MaxStartups 200
MaxSessions 200
"""


@dataclass
class SshHost:
    name: str
    address: str
    uid: int
    base: Path
    link: str  # this machine's end of its network link
    process: subprocess.Popen[bytes]

    @property
    def login(self) -> str:
        return f"{USER}@{self.name}"

    @property
    def home(self) -> Path:
        return self.base / "home" / USER

    @property
    def folder(self) -> Path:
        """Runyard's folder on the host."""
        return self.home / ".runyard-host"

    def runs(self) -> dict[str, Path]:
        """The folders of the runs on the host."""
        return {path.name: path for path in self.folder.glob("yards/*/runs/*")}

    def disconnect(self) -> None:
        _ip("link", "set", self.link, "down")

    def reconnect(self) -> None:
        _ip("link", "set", self.link, "up")

    def inside(self, command: str) -> None:
        """Run a command as root in the namespaces of the host."""
        namespaces = ["nsenter", "-t", str(self.process.pid), "-m", "-n", "-u"]
        subprocess.run([*namespaces, "/bin/sh", "-c", command], check=True)

    def processes(self) -> list[int]:
        """The processes of the host's user; its sshd runs as root."""
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if entry.stat().st_uid == self.uid and state not in "ZX":
                        pids.append(int(entry.name))
        return pids

    def fail(self) -> None:
        """Simulate a power failure."""
        self.disconnect()
        self.stop()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.kill_processes()
        eventually(lambda: not self.processes(), f"the processes of {self.name} exit")

    def kill_processes(self) -> None:
        """Kill all processes of the host's user, including agents."""
        for pid in self.processes():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


@dataclass
class Net:
    hosts: list[SshHost]
    key: Path
    wrong_key: Path
    ssh: str  # for RUNYARD_SSH
    known_hosts: Path
    shared: Path  # a folder that this machine and all hosts see under the same path


def train_processes(pids: list[int]) -> list[int]:
    return [pid for pid in pids if b"train.py" in command(pid)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def require_sshd() -> None:
    """Skip if sshd cannot be installed."""
    if os.geteuid() != 0:
        pytest.skip("SSH hosts in network namespaces need root")
    if not Path("/usr/sbin/sshd").exists():
        result = subprocess.run([INSTALL], capture_output=True, text=True)
        if result.returncode != 0:
            pytest.skip(f"sshd is not installed: {result.stderr.strip()[-300:]}")
    probe = subprocess.run(["unshare", "-n", "-m", "-u", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"network namespaces are not available: {probe.stderr.strip()}")


@contextmanager
def ssh_hosts(count: int, *, own_tmp: bool = True) -> Iterator[Net]:
    base = Path(tempfile.mkdtemp(prefix="ry-hosts-", dir="/var/tmp"))  # not in /tmp: each host has its own
    base.chmod(0o755)
    (base / "shared").mkdir()
    _remove_old_bridges()
    number = next(_numbers)
    bridge, subnet = f"ry{os.getpid()}b{number}", _free_subnet()
    hosts: list[SshHost] = []
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{subnet}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        key, wrong_key = _key(base / "key"), _key(base / "wrong_key")
        for index in range(1, count + 1):
            uid = _FIRST_UID + os.getpid() % 1000 * 40 + number % 10 * 4 + index
            hosts.append(_start_host(base / f"h{index}", f"{subnet}.{index}", uid, bridge, key, own_tmp))
        known_hosts = base / "known_hosts"
        known_hosts.write_text("".join(f"{h.name} {(h.base / 'host_key.pub').read_text()}" for h in hosts))
        names = "".join(f"Host {h.name}\n  HostName {h.address}\n  HostKeyAlias {h.name}\n" for h in hosts)
        # a second name for the last host, with the first as jump host
        login = f"  User {USER}\n  IdentityFile {key}\n"
        names += f"Host gate\n  HostName {hosts[0].address}\n  HostKeyAlias {hosts[0].name}\n{login}"
        names += f"Host far\n  HostName {hosts[-1].address}\n  HostKeyAlias {hosts[-1].name}\n  ProxyJump gate\n{login}"
        config = base / "ssh_config"
        options = f"  UserKnownHostsFile {known_hosts}\n  GlobalKnownHostsFile /dev/null\n  IdentityAgent none\n"
        config.write_text(f"{names}Host *\n{options}")
        yield Net(hosts, key, wrong_key, f"ssh -F {config}", known_hosts, base / "shared")
    finally:
        for host in hosts:
            host.stop()
        subprocess.run(["ip", "link", "del", bridge], capture_output=True)
        shutil.rmtree(base, ignore_errors=True)


def _start_host(base: Path, address: str, uid: int, bridge: str, key: Path, own_tmp: bool) -> SshHost:
    name = base.name
    home = base / "home" / USER
    home.mkdir(parents=True)
    # these networks have no route out: a search for a package should fail immediately
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "pip" / "pip.conf").write_text("[global]\nno-index = true\n")
    for path in (home, *home.rglob("*")):
        os.chown(path, uid, uid)
    home.chmod(0o700)
    (base / "passwd").write_text(
        f"root:*:0:0::/root:/bin/sh\nsshd:*:65533:65534::/run/sshd:/bin/false\n{USER}:*:{uid}:{uid}::/home/{USER}:/bin/sh\n"
    )
    (base / "group").write_text(f"root:*:0:\nnogroup:*:65534:\n{USER}:*:{uid}:\n")
    _key(base / "host_key")
    shutil.copy(f"{key}.pub", base / "authorized_keys")
    (base / "sshd_config").write_text(_SSHD.format(address=address))
    for file in ("sshd_config", "host_key", "authorized_keys"):
        shutil.copy(base / file, base / "home" / file)
    # the interpreter of these tests may be in a folder that only root can enter
    prefix = Path(sys.base_prefix).resolve()
    closed = next((p for p in reversed(prefix.parents) if not p.stat().st_mode & 0o001), None)
    local_link, host_link = f"{bridge}v{name[1:]}", f"{bridge}w{name[1:]}"
    _ip("link", "add", local_link, "type", "veth", "peer", "name", host_link)
    _ip("link", "set", local_link, "master", bridge, "up")
    with open(base / "sshd.log", "wb") as log:
        process = subprocess.Popen(
            ["unshare", "-n", "-m", "-u", "sh", "-c", _HOST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={
                "PATH": os.environ["PATH"],
                "NAME": name,
                "BASE": str(base),
                "ADDRESS": address,
                "LINK": host_link,
                "OWN_TMP": "1" if own_tmp else "",
                "PYTHONS": str(prefix) if closed else "",
                "CLOSED": str(closed or ""),
            },
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", (base / "sshd.log").read_text()
    _ip("link", "set", host_link, "netns", str(process.pid))
    process.stdin.write(b"go\n")
    process.stdin.close()
    process.stdout.close()
    host = SshHost(name, address, uid, base, local_link, process)
    eventually(lambda: "listening" in (base / "sshd.log").read_text(), f"the sshd of {name} listens")
    return host


def _key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert result.returncode == 0, f"ip {' '.join(arguments)}: {result.stderr}"


def _free_subnet() -> str:
    used = subprocess.run(["ip", "-o", "-4", "address"], capture_output=True, text=True).stdout
    numbers = ((os.getpid() + n) % 250 for n in range(250))
    return next(subnet for subnet in (f"10.213.{number}" for number in numbers) if f" {subnet}." not in used)


def _remove_old_bridges() -> None:
    """Remove the bridges of tests that were killed."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    for name, pid in re.findall(r"\b(ry(\d+)b\d):", links):
        if not Path(f"/proc/{pid}").exists():
            subprocess.run(["ip", "link", "del", name], capture_output=True)
