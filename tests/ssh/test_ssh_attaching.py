"""Attaching hosts: what cannot work is one error before anything is kept, and it names the host."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runyard import ComputeTarget, Experiment, RemoteCompute, ScriptRunConfig, SshCompute, Workspace
from runyard.errors import ComputeTargetException
from ssh_hosts import USER, Net, SshHost

_names = (f"lab-{number}" for number in itertools.count())


def attach(workspace: Workspace, hosts: list[str], **more: object) -> ComputeTarget:
    return ComputeTarget.attach(workspace, next(_names), SshCompute.attach_configuration(hosts, **more))


def refused(workspace: Workspace, hosts: list[str], **more: object) -> ComputeTargetException:
    with pytest.raises(ComputeTargetException) as caught:
        attach(workspace, hosts, **more)
    assert not [name for name in workspace.compute_targets if name.startswith("lab-")]
    return caught.value


@pytest.fixture
def host(net: Net) -> SshHost:
    return net.hosts[0]


def test_a_host_whose_key_is_not_known_is_never_silently_trusted(workspace: Workspace, net: Net, host: SshHost) -> None:
    known = net.known_hosts.read_text()
    net.known_hosts.write_text("")
    try:
        error = refused(workspace, [host.login], key=net.key)
        assert net.known_hosts.read_text() == ""
    finally:
        net.known_hosts.write_text(known)
    assert error.message == "the host key of h1 is not known here"
    assert f"`ssh {host.login}` once" in error.hint
    assert "fingerprint" in error.hint


def test_a_host_with_another_key_than_before_is_an_alarm(workspace: Workspace, net: Net, host: SshHost) -> None:
    known = net.known_hosts.read_text()
    other = (net.hosts[1].base / "host_key.pub").read_text()
    net.known_hosts.write_text(f"h1 {other}")
    try:
        error = refused(workspace, [host.login], key=net.key)
    finally:
        net.known_hosts.write_text(known)
    assert "another host key than the one that is known" in error.message


def test_a_key_that_opens_nothing_is_named(workspace: Workspace, net: Net, host: SshHost) -> None:
    error = refused(workspace, [host.login], key=net.wrong_key)
    assert error.message.startswith(f"h1 did not let ana in with the key {net.wrong_key}: ")
    assert "authorized_keys" in error.hint


def test_a_key_that_is_no_file_is_refused(workspace: Workspace, host: SshHost, tmp_path: Path) -> None:
    assert "there is no file" in refused(workspace, [host.login], key=tmp_path / "nothing").message


def test_a_user_who_is_not_there_is_refused(workspace: Workspace, net: Net) -> None:
    assert "h1 did not let bob in" in refused(workspace, ["bob@h1"], key=net.key).message


def test_a_host_that_cannot_be_reached_is_named_beside_one_that_can(workspace: Workspace, net: Net) -> None:
    gone = net.hosts[0].address.rpartition(".")[0] + ".77"
    error = refused(workspace, [net.hosts[0].login, f"{USER}@{gone}:2222"], key=net.key)
    assert gone in error.message
    assert "h1" not in error.message
    assert "is it on" in error.hint


def test_a_name_that_nobody_knows_is_refused(workspace: Workspace, net: Net) -> None:
    assert "nowhere.invalid cannot be reached" in refused(workspace, ["ana@nowhere.invalid"], key=net.key).message


def test_a_host_named_twice_is_refused_also_by_two_names(workspace: Workspace, net: Net, host: SshHost) -> None:
    assert refused(workspace, [host.login, host.login], key=net.key).message == "ana@h1 is named twice"
    address = f"{USER}@{host.address}"
    known = net.known_hosts.read_text()
    net.known_hosts.write_text(known + f"{host.address} {(host.base / 'host_key.pub').read_text()}")
    try:
        error = refused(workspace, [host.login, address], key=net.key)
    finally:
        net.known_hosts.write_text(known)
    assert error.message == f"{host.login} and {address} are one and the same machine"


@pytest.mark.parametrize("name", ["-oProxyCommand=touch /tmp/x", "", "a b"])
def test_what_is_no_address_never_reaches_ssh(workspace: Workspace, net: Net, name: str) -> None:
    refused(workspace, [name], key=net.key)


def test_a_name_that_is_taken_is_refused_unless_it_is_the_same(
    workspace: Workspace, net: Net, lab: ComputeTarget
) -> None:
    hosts = [host.login for host in net.hosts]
    again = ComputeTarget.attach(workspace, "lab", SshCompute.attach_configuration(hosts, key=net.key))
    assert again.name == "lab"
    with pytest.raises(ComputeTargetException, match="there is a compute target 'lab' already"):
        ComputeTarget.attach(workspace, "lab", SshCompute.attach_configuration(hosts[:1], key=net.key))


def test_a_folder_that_cannot_be_written_to_is_named(workspace: Workspace, net: Net, host: SshHost) -> None:
    error = refused(workspace, [host.login], key=net.key, folder="/etc/runyard")
    assert error.message.startswith("the folder /etc/runyard on h1 cannot be used: ")


@contextmanager
def without_python(host: SshHost) -> Iterator[None]:
    pythons = "/usr/bin/python3 /usr/bin/python3.* /usr/local/bin/python*"
    each = f"for p in {pythons}; do if [ -f $p ]; then {{}}; fi; done"
    host.inside(each.format('mount --bind /bin/false "$(readlink -f $p)"'))
    try:
        yield
    finally:
        host.inside(each.format('umount "$(readlink -f $p)"'))


def test_a_host_without_a_python_is_lent_the_yards_own(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path], net: Net, host: SshHost, wheel: Path
) -> None:
    with without_python(host):
        target = attach(workspace, [host.login], key=net.key)
        script = "import hosted, sys\nprint(hosted.WORD, sys.version_info[:2])\n"
        config = ScriptRunConfig(project(train=script), script="train.py", compute_target=target)
        config.run_config.environment.python.conda_dependencies.add_pip_package(str(wheel))
        run = experiment.submit(config)
        run.wait_for_completion()
        logs = run.get_details_with_logs()["logFiles"]
        target.detach()
    assert logs["azureml-logs/70_driver_log.txt"] == f"from a wheel {sys.version_info[:2]}\n"
    shutil.rmtree(host.folder / "python")


def test_a_host_on_which_the_yards_python_does_not_start_says_so(workspace: Workspace, net: Net, host: SshHost) -> None:
    with without_python(host):
        host.inside("mount --bind /bin/false /bin/tar")
        try:
            error = refused(workspace, [host.login], key=net.key)
        finally:
            host.inside("umount /bin/tar")
    assert error.message.startswith("h1 (Linux ")
    assert "no Python 3.9 or newer, and the yard's own does not run there" in error.message


def test_a_greeting_of_the_shell_does_no_harm(workspace: Workspace, net: Net, host: SshHost) -> None:
    said_at_login = host.home / ".ssh" / "rc"
    said_at_login.parent.mkdir()
    said_at_login.write_text("echo this host was updated yesterday; echo\n")
    try:
        attach(workspace, [host.login], key=net.key).detach()
    finally:
        shutil.rmtree(said_at_login.parent)


def test_names_and_jump_hosts_of_the_users_configuration_count(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path]
) -> None:
    """`far` is a name in ssh_config alone: with a user, a key, and a jump host on the way."""
    target = attach(workspace, ["far"])
    config = ScriptRunConfig(project(train="import socket; print(socket.gethostname())"), script="train.py")
    config.run_config.target = target
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    assert run.wait_for_completion(show_output=False)["status"] == "Completed"
    assert "h3" in str(run.get_details_with_logs()["logFiles"])
    target.detach()


def test_one_machine_of_the_sdk_v1_is_one_host(
    workspace: Workspace, experiment: Experiment, net: Net, project: Callable[..., Path]
) -> None:
    name = next(_names)
    machine = RemoteCompute.attach(
        workspace, name, username=USER, address="h2", ssh_port=22, private_key_file=str(net.key)
    )
    config = ScriptRunConfig(project(train="import socket; print(socket.gethostname())"), script="train.py")
    config.run_config.target = machine
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    assert run.wait_for_completion(show_output=False)["status"] == "Completed"
    assert "h2" in str(run.get_details_with_logs()["logFiles"])
    machine.detach()
    assert name not in workspace.compute_targets
