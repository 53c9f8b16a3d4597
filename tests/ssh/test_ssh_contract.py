"""The contract of all compute targets, on real SSH hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.compute.local.compute import LocalCompute
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.host import Host
from runyard.compute.ssh.openssh import checked_address
from runyard.environments.node_package import create_node_package
from runyard.launch.order import Node
from runyard.testing.compute import ComputeContract
from ssh_hosts import Net, require_sshd, ssh_hosts
from support import a_home


@pytest.fixture(scope="module")
def shared_net() -> Iterator[Net]:
    """Two hosts that see the files of these tests."""
    require_sshd()
    with ssh_hosts(2, own_tmp=False) as net:
        yield net


@pytest.fixture(scope="module")
def two_hosts(shared_net: Net) -> Iterator[SshCompute]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_SSH", shared_net.ssh)
        node_kit = create_node_package(home / "kit")
        addresses = [checked_address(host.login, str(shared_net.key)) for host in shared_net.hosts]
        hosts = [Host(address, home=home, kit=node_kit) for address in addresses]
        compute = SshCompute(hosts, [host.capacity for host in hosts], kit=node_kit, local=LocalCompute(home))
        yield compute
        compute.close()


class TestSshCompute(ComputeContract):
    @pytest.fixture
    def compute(self, two_hosts: SshCompute, shared_net: Net, tmp_path: Path) -> Iterator[SshCompute]:
        for folder in (tmp_path, *list(tmp_path.parents)[:-2]):  # the hosts' user must be able to read them
            folder.chmod(0o755)
        yield two_hosts
        for host, server in zip(two_hosts.hosts.values(), shared_net.hosts):
            for run_id in server.runs():  # the tests use the same run ids
                host.unfollow(run_id)
                host.call("discard", run_id=run_id)

    @pytest.fixture
    def nodes(self, two_hosts: SshCompute) -> tuple[Node, ...]:
        return tuple(Node(name) for name in two_hosts.hosts)
