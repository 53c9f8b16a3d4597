"""Two hosts on this machine, each a network namespace with an address, an interface and a host name of its own."""

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

INSTALL = Path(__file__).parents[1] / "scripts" / "install-sshd"  # brings `ip` along
_numbers = itertools.count()


@dataclass(frozen=True)
class Host:
    name: str  # of the namespace, of the host, and of its interface
    address: str

    def command(self, *words: str) -> list[str]:
        """Run there. It sees the host's name and network; files and processes are this machine's."""
        named = 'hostname "$0" && exec "$@"'
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", named, self.name, *words]

    def cut(self) -> None:
        _ip("-n", self.name, "link", "set", self.name, "down")

    def mend(self) -> None:
        _ip("-n", self.name, "link", "set", self.name, "up")


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Joined by a cable. Both also have a network that leads nowhere, under the same address, as Docker makes it."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if shutil.which("ip") is None:
        installed = subprocess.run([INSTALL], capture_output=True, text=True)
        if installed.returncode != 0:
            pytest.skip(installed.stderr.strip())
    mine = f"{os.getpid() % 0xFFFFF:x}{next(_numbers)}"
    hosts = Host(f"rya{mine}", "10.86.7.1"), Host(f"ryb{mine}", "10.86.7.2")
    made: list[Host] = []
    try:
        for host in hosts:
            if subprocess.run(["ip", "netns", "add", host.name], capture_output=True).returncode != 0:
                pytest.skip("this machine gives nobody a network namespace")
            made.append(host)
        _ip("-n", hosts[0].name, "link", "add", hosts[0].name, "type", "veth", "peer", "name", hosts[1].name)
        _ip("-n", hosts[0].name, "link", "set", hosts[1].name, "netns", hosts[1].name)
        for host in hosts:
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.name)
            _ip("-n", host.name, "link", "add", "docker0", "type", "veth", "peer", "name", "nowhere")
            _ip("-n", host.name, "address", "add", "172.17.0.1/16", "dev", "docker0")
            for interface in ("lo", "nowhere", "docker0", host.name):
                _ip("-n", host.name, "link", "set", interface, "up")
        yield hosts
    finally:
        for host in made:
            _ip("netns", "delete", host.name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
