"""Two hosts on this machine: network namespaces with their own address, interface and host name."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[1] / "scripts" / "install-sshd"  # also installs `ip`
_numbers = itertools.count()


@dataclass(frozen=True)
class Host:
    name: str  # of the namespace, of the host, and of its interface
    address: str

    def command(self, *argv: str) -> list[str]:
        """A command line that runs ``argv`` with the host's name and network, but with this machine's files."""
        script = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", script, self.name, *argv]

    def disconnect(self) -> None:
        _ip("-n", self.name, "link", "set", self.name, "down")

    def reconnect(self) -> None:
        _ip("-n", self.name, "link", "set", self.name, "up")


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two connected hosts. Both also have an isolated network with the same address, like Docker's."""
    if os.geteuid() != 0:
        pytest.skip("only root can create network namespaces")
    if shutil.which("ip") is None:
        installed = subprocess.run([INSTALL], capture_output=True, text=True)
        if installed.returncode != 0:
            pytest.skip(installed.stderr.strip())
    suffix = f"{os.getpid() % 0xFFFFF:x}{next(_numbers)}"
    hosts = Host(f"rya{suffix}", "10.86.7.1"), Host(f"ryb{suffix}", "10.86.7.2")
    created: list[Host] = []
    try:
        for host in hosts:
            if subprocess.run(["ip", "netns", "add", host.name], capture_output=True).returncode != 0:
                pytest.skip("network namespaces are not available")
            created.append(host)
        _ip("-n", hosts[0].name, "link", "add", hosts[0].name, "type", "veth", "peer", "name", hosts[1].name)
        _ip("-n", hosts[0].name, "link", "set", hosts[1].name, "netns", hosts[1].name)
        for host in hosts:
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.name)
            _ip("-n", host.name, "link", "add", "docker0", "type", "veth", "peer", "name", "isolated")
            _ip("-n", host.name, "address", "add", "172.17.0.1/16", "dev", "docker0")
            for interface in ("lo", "isolated", "docker0", host.name):
                _ip("-n", host.name, "link", "set", interface, "up")
        yield hosts
    finally:
        for host in created:
            _ip("netns", "delete", host.name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
