"""What every compute target must do, on a real SSH host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.compute.local import LocalCompute
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.connection import checked_address
from runyard.compute.ssh.host import Hooks, Host
from runyard.environments.kit import kit
from runyard.testing.compute import ComputeContract
from ssh_hosts import Net, require_sshd, ssh_hosts
from support import a_home


@pytest.fixture(scope="module")
def seeing_net() -> Iterator[Net]:
    """A host that sees the files of these tests."""
    require_sshd()
    with ssh_hosts(1, own_tmp=False) as found:
        yield found


@pytest.fixture(scope="module")
def on_one_host(seeing_net: Net) -> Iterator[SshCompute]:
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_SSH", seeing_net.ssh)
        node_kit = kit(home / "kit")
        hooks = Hooks(lambda run_id: None, lambda run_id, text: None, lambda: None)
        address = checked_address(seeing_net.hosts[0].login, str(seeing_net.key))
        host = Host(address, home=home, kit=node_kit, hooks=hooks)
        compute = SshCompute([host], [host.capacity], kit=node_kit, local=LocalCompute(home))
        yield compute
        compute.close()


class TestSshCompute(ComputeContract):
    @pytest.fixture
    def compute(self, on_one_host: SshCompute, seeing_net: Net, tmp_path: Path) -> Iterator[SshCompute]:
        for folder in (tmp_path, *list(tmp_path.parents)[:-2]):  # an ordinary user looks for files there
            folder.chmod(0o755)
        yield on_one_host
        (host,) = on_one_host.hosts.values()
        for run_id in seeing_net.hosts[0].runs():  # the runs of all these tests have one name
            host.leave(run_id)
            host.call("forget", run=run_id)
