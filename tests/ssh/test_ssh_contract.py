"""What every compute target must do, on a real SSH host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.compute.local.compute import LocalCompute
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.host import Hooks, Host
from runyard.compute.ssh.openssh import checked_address
from runyard.environments.node_package import kit
from runyard.launch.order import Node
from runyard.testing.compute import ComputeContract
from ssh_hosts import Net, require_sshd, ssh_hosts
from support import a_home


@pytest.fixture(scope="module")
def seeing_net() -> Iterator[Net]:
    """Two hosts that see the files of these tests."""
    require_sshd()
    with ssh_hosts(2, own_tmp=False) as found:
        yield found


@pytest.fixture(scope="module")
def on_two_hosts(seeing_net: Net) -> Iterator[SshCompute]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_SSH", seeing_net.ssh)
        node_kit = kit(home / "kit")
        hooks = Hooks(lambda run_id: None, lambda run_id, text: None, lambda: None)
        addresses = [checked_address(host.login, str(seeing_net.key)) for host in seeing_net.hosts]
        hosts = [Host(address, home=home, kit=node_kit, hooks=hooks) for address in addresses]
        compute = SshCompute(hosts, [host.capacity for host in hosts], kit=node_kit, local=LocalCompute(home))
        yield compute
        compute.close()


class TestSshCompute(ComputeContract):
    @pytest.fixture
    def compute(self, on_two_hosts: SshCompute, seeing_net: Net, tmp_path: Path) -> Iterator[SshCompute]:
        for folder in (tmp_path, *list(tmp_path.parents)[:-2]):  # an ordinary user looks for files there
            folder.chmod(0o755)
        yield on_two_hosts
        for host, there in zip(on_two_hosts.hosts.values(), seeing_net.hosts):
            for run_id in there.runs():  # the runs of all these tests have one name
                host.leave(run_id)
                host.call("forget", run=run_id)

    @pytest.fixture
    def nodes(self, on_two_hosts: SshCompute) -> tuple[Node, ...]:
        return tuple(Node(name) for name in on_two_hosts.hosts)
