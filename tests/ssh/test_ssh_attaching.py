"""Attaching hosts: a host that cannot be used is an error with its name, and nothing is stored."""

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


def attach(workspace: Workspace, hosts: list[str], **options: object) -> ComputeTarget:
    return ComputeTarget.attach(workspace, next(_names), SshCompute.attach_configuration(hosts, **options))


def attach_error(workspace: Workspace, hosts: list[str], **options: object) -> ComputeTargetException:
    with pytest.raises(ComputeTargetException) as caught:
        attach(workspace, hosts, **options)
    assert not [name for name in workspace.compute_targets if name.startswith("lab-")]
    return caught.value


@pytest.fixture
def host(net: Net) -> SshHost:
    return net.hosts[0]


def test_an_unknown_host_key_is_refused(workspace: Workspace, net: Net, host: SshHost) -> None:
    known_hosts = net.known_hosts.read_text()
    net.known_hosts.write_text("")
    try:
        error = attach_error(workspace, [host.login], key=net.key)
        assert net.known_hosts.read_text() == ""
    finally:
        net.known_hosts.write_text(known_hosts)
    assert error.message == "the host key of h1 is not known here"
    assert f"`ssh {host.login}` once" in error.hint
    assert "fingerprint" in error.hint


def test_a_changed_host_key_is_refused(workspace: Workspace, net: Net, host: SshHost) -> None:
    known_hosts = net.known_hosts.read_text()
    other = (net.hosts[1].base / "host_key.pub").read_text()
    net.known_hosts.write_text(f"h1 {other}")
    try:
        error = attach_error(workspace, [host.login], key=net.key)
    finally:
        net.known_hosts.write_text(known_hosts)
    assert "the host key of h1 has changed" in error.message


def test_a_key_that_the_host_refuses_is_named(workspace: Workspace, net: Net, host: SshHost) -> None:
    error = attach_error(workspace, [host.login], key=net.wrong_key)
    assert error.message.startswith(f"h1 refused the login of ana with the key {net.wrong_key}: ")
    assert "authorized_keys" in error.hint


def test_a_missing_key_file_is_refused(workspace: Workspace, host: SshHost, tmp_path: Path) -> None:
    assert "no file" in attach_error(workspace, [host.login], key=tmp_path / "nothing").message


def test_an_unknown_user_is_refused(workspace: Workspace, net: Net) -> None:
    assert "h1 refused the login of bob" in attach_error(workspace, ["bob@h1"], key=net.key).message


def test_only_the_unreachable_host_is_named(workspace: Workspace, net: Net) -> None:
    unused = net.hosts[0].address.rpartition(".")[0] + ".77"
    error = attach_error(workspace, [net.hosts[0].login, f"{USER}@{unused}:2222"], key=net.key)
    assert unused in error.message
    assert "h1" not in error.message
    assert "is it on" in error.hint


def test_an_unknown_host_name_is_refused(workspace: Workspace, net: Net) -> None:
    assert "nowhere.invalid cannot be reached" in attach_error(workspace, ["ana@nowhere.invalid"], key=net.key).message


def test_one_host_under_two_names_is_refused(workspace: Workspace, net: Net, host: SshHost) -> None:
    assert attach_error(workspace, [host.login, host.login], key=net.key).message == "duplicate host ana@h1"
    address = f"{USER}@{host.address}"
    known_hosts = net.known_hosts.read_text()
    net.known_hosts.write_text(known_hosts + f"{host.address} {(host.base / 'host_key.pub').read_text()}")
    try:
        error = attach_error(workspace, [host.login, address], key=net.key)
    finally:
        net.known_hosts.write_text(known_hosts)
    assert error.message == f"{host.login} and {address} are the same machine"


@pytest.mark.parametrize("name", ["-oProxyCommand=touch /tmp/x", "", "a b"])
def test_an_invalid_address_is_not_passed_to_ssh(workspace: Workspace, net: Net, name: str) -> None:
    attach_error(workspace, [name], key=net.key)


def test_an_existing_name_is_refused_unless_the_target_is_the_same(
    workspace: Workspace, net: Net, lab: ComputeTarget
) -> None:
    hosts = [host.login for host in net.hosts]
    same = ComputeTarget.attach(workspace, "lab", SshCompute.attach_configuration(hosts, key=net.key))
    assert same.name == "lab"
    with pytest.raises(ComputeTargetException, match="a different compute target named 'lab' exists"):
        ComputeTarget.attach(workspace, "lab", SshCompute.attach_configuration(hosts[:1], key=net.key))


def test_a_folder_that_is_not_writable_is_named(workspace: Workspace, net: Net, host: SshHost) -> None:
    error = attach_error(workspace, [host.login], key=net.key, folder="/etc/runyard")
    assert error.message.startswith("cannot use the folder /etc/runyard on h1: ")


@contextmanager
def without_python(host: SshHost) -> Iterator[None]:
    pythons = "/usr/bin/python3 /usr/bin/python3.* /usr/local/bin/python*"
    each = f"for p in {pythons}; do if [ -f $p ]; then {{}}; fi; done"
    host.inside(each.format('mount --bind /bin/false "$(readlink -f $p)"'))
    try:
        yield
    finally:
        host.inside(each.format('umount "$(readlink -f $p)"'))


def test_a_host_without_python_gets_a_copy_of_the_yards(
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


def test_a_host_on_which_the_yards_python_does_not_start_is_refused(
    workspace: Workspace, net: Net, host: SshHost
) -> None:
    with without_python(host):
        host.inside("mount --bind /bin/false /bin/tar")
        try:
            error = attach_error(workspace, [host.login], key=net.key)
        finally:
            host.inside("umount /bin/tar")
    assert error.message.startswith("h1 (Linux ")
    assert "no Python 3.9 or newer, and the yard's own does not run there" in error.message


def test_output_of_the_login_shell_is_skipped(workspace: Workspace, net: Net, host: SshHost) -> None:
    login_script = host.home / ".ssh" / "rc"
    login_script.parent.mkdir()
    login_script.write_text("echo this host was updated yesterday; echo\n")
    try:
        target = attach(workspace, [host.login], key=net.key)
        assert target.name in workspace.compute_targets
        target.detach()
    finally:
        shutil.rmtree(login_script.parent)


def test_names_and_jump_hosts_of_ssh_config_are_used(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path]
) -> None:
    """`far` is defined in ssh_config, with a user, a key and a jump host."""
    target = attach(workspace, ["far"])
    config = ScriptRunConfig(project(train="import socket; print(socket.gethostname())"), script="train.py")
    config.run_config.target = target
    config.run_config.environment.python.user_managed_dependencies = True
    run = experiment.submit(config)
    assert run.wait_for_completion(show_output=False)["status"] == "Completed"
    assert "h3" in str(run.get_details_with_logs()["logFiles"])
    target.detach()


def test_remote_compute_of_the_sdk_v1_is_one_host(
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
