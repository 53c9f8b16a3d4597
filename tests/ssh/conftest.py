"""Three hosts and a yard, shared by these tests because logging in is slow."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import ComputeTarget, ScriptRunConfig, SshCompute, Workspace
from ssh_hosts import Net, require_sshd, ssh_hosts
from support import a_home, logged_errors


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "ssh" in item.path.parts:
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.xdist_group("ssh"))


@pytest.fixture(scope="session")
def net() -> Iterator[Net]:
    require_sshd()
    with ssh_hosts(3) as hosts_net:
        yield hosts_net


@pytest.fixture(scope="session")
def lab_home(net: Net) -> Iterator[Path]:
    with a_home() as folder:
        yield folder
        errors = logged_errors(folder)
    assert errors == []


@pytest.fixture
def home(lab_home: Path, net: Net, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNYARD_HOME", str(lab_home))
    monkeypatch.setenv("RUNYARD_SSH", net.ssh)
    return lab_home


@pytest.fixture
def lab(workspace: Workspace, net: Net) -> ComputeTarget:
    """All three hosts as one target."""
    hosts = [host.login for host in net.hosts]
    return ComputeTarget.attach(workspace, "lab", SshCompute.attach_configuration(hosts, key=net.key))


@pytest.fixture
def on_lab(lab: ComputeTarget, project: Callable[..., Path]) -> Callable[..., ScriptRunConfig]:
    """`on_lab('print(1)')` configures a run of that script with the host's own Python."""

    def configure(script: str, arguments: list[object] | None = None, distributed: object = None) -> ScriptRunConfig:
        config = ScriptRunConfig(
            project(train=script),
            script="train.py",
            arguments=arguments or [],
            compute_target=lab,
            distributed_job_config=distributed,
        )
        environment = config.run_config.environment
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = "/usr/bin/python3"
        return config

    return configure


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with one module, so that an environment can be built without a network."""
    path = tmp_path_factory.mktemp("wheels") / "hosted-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\nName: hosted\nVersion: 1.0\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hosted.py", "WORD = 'from a wheel'\n")
        archive.writestr("hosted-1.0.dist-info/METADATA", metadata)
        archive.writestr("hosted-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("hosted-1.0.dist-info/RECORD", "hosted.py,,\n")
    return path
