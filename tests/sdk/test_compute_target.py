from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import RemoteCompute, SlurmCompute, SshCompute
from runyard.errors import ComputeTargetException, UserErrorException
from runyard.sdk.compute.amlcompute import AmlCompute
from runyard.sdk.compute.target import ComputeTarget, LocalTarget

LOCAL = {"name": "local", "kind": "Local", "configuration": {}, "created_at": None, "status": {"cpus": 2}}


class FakeYard:
    """Answers as a yard that knows its own machine and one cluster, and makes no others."""

    def __init__(self) -> None:
        cluster = {**LOCAL, "name": "cluster", "kind": "AmlCompute"}
        self.computes: dict[str, dict[str, Any]] = {"local": dict(LOCAL), "cluster": cluster}

    @property
    def connection(self) -> FakeYard:
        return self

    def get(self, path: str, **query: Any) -> Any:
        if path == "/api/computes":
            return list(self.computes.values())
        name = path.rpartition("/")[2]
        if name not in self.computes:
            raise ComputeTargetException(f"no compute target named {name!r}", hint="targets here: local")
        return self.computes[name]

    def post(self, path: str, body: Any) -> Any:
        assert (path, body["kind"], body["configuration"]["max_nodes"]) == ("/api/computes", "AmlCompute", 4)
        raise ComputeTargetException(f"cannot create {body['name']!r}: clusters are not available in this version")

    def delete(self, path: str) -> None:
        del self.computes[path.rpartition("/")[2]]


def test_a_target_has_the_class_of_its_kind() -> None:
    """B2.7, B2.12: found by name, a target is of its concrete class, and ready."""
    target = ComputeTarget(workspace=FakeYard(), name="local")
    assert type(target) is LocalTarget
    assert (target.name, target.type, target.provisioning_state) == ("local", "Local", "Succeeded")
    assert target.get_status() == {"cpus": 2}
    cluster = ComputeTarget(FakeYard(), "cluster")
    assert type(cluster) is AmlCompute
    assert cluster.type == "AmlCompute"


def test_an_absent_target_is_a_compute_target_exception() -> None:
    """B2.7: create-or-attach cells depend on the exception."""
    with pytest.raises(ComputeTargetException, match="no compute target named 'gpu'"):
        ComputeTarget(workspace=FakeYard(), name="gpu")


def test_a_target_of_another_class_is_refused() -> None:
    with pytest.raises(ComputeTargetException, match="is of type Local, not AmlCompute"):
        AmlCompute(FakeYard(), "local")
    assert AmlCompute(FakeYard(), "cluster").name == "cluster"


def test_all_targets_are_listed() -> None:
    assert [target.name for target in ComputeTarget.list(FakeYard())] == ["local", "cluster"]


def test_the_usual_find_or_create_cell_works() -> None:
    yard = FakeYard()
    try:
        ComputeTarget(workspace=yard, name="gpucluster")
    except ComputeTargetException:
        config = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)
        with pytest.raises(ComputeTargetException, match="clusters are not available in this version"):
            ComputeTarget.create(yard, "gpucluster", config)


@pytest.mark.parametrize("name", ["local", "amlcompute", "containerinstance"])
def test_reserved_names_are_refused(name: str) -> None:
    """B2.8."""
    with pytest.raises(UserErrorException, match="cannot be named"):
        ComputeTarget.create(FakeYard(), name, AmlCompute.provisioning_configuration(max_nodes=4))


def test_an_invalid_configuration_is_refused() -> None:
    with pytest.raises(ComputeTargetException, match="provisioning_configuration must be"):
        ComputeTarget.create(FakeYard(), "mine", {"max_nodes": 4})


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "max_nodes is missing"),
        ({"max_nodes": -1}, "max_nodes must be at least 0"),
        ({"max_nodes": "4"}, "max_nodes must be a whole number"),
        ({"max_nodes": 1, "min_nodes": 2}, "is below min_nodes"),
        ({"max_nodes": 1, "vnet_name": "a"}, "a virtual network needs"),
        ({"max_nodes": 1, "admin_username": "me"}, "an admin user needs"),
        ({"max_nodes": 1, "idle_seconds_before_scaledown": "soon"}, "idle_seconds_before_scaledown must be"),
    ],
)
def test_an_invalid_cluster_is_refused(parameters: Any, text: str) -> None:
    """B2.9."""
    with pytest.raises(ComputeTargetException, match=text):
        AmlCompute.provisioning_configuration(**parameters)


def test_no_nodes_and_a_number_written_as_text_are_accepted() -> None:
    """B2.9."""
    target = AmlCompute.provisioning_configuration(max_nodes=0, idle_seconds_before_scaledown="300")
    assert (target.min_nodes, target.max_nodes, target.idle_seconds_before_scaledown) == (0, 0, 300)
    assert AmlCompute.provisioning_configuration(max_nodes=1).idle_seconds_before_scaledown == 1800


@pytest.mark.parametrize("keyword", ["attach_configuration", "attach_config"])
def test_attach_accepts_both_spellings_and_only_attachable_targets(keyword: str) -> None:
    """B2.13."""
    with pytest.raises(ComputeTargetException, match="attach_configuration must be the result of SlurmCompute"):
        ComputeTarget.attach(FakeYard(), "vm", **{keyword: object()})
    with pytest.raises(UserErrorException, match="cannot be named 'local'"):
        ComputeTarget.attach(FakeYard(), "local", **{keyword: SlurmCompute.attach_configuration("main")})


def test_a_partition_is_described_by_its_configuration() -> None:
    assert SlurmCompute.attach_configuration("main").configuration == {"partition": "main"}
    target = SlurmCompute.attach_configuration(
        "main", account="lab", qos="long", constraint="a100", options="--exclusive --comment='a b'"
    )
    assert target.configuration == {
        "partition": "main",
        "account": "lab",
        "qos": "long",
        "constraint": "a100",
        "options": ["--exclusive", "--comment=a b"],
    }
    with pytest.raises(ComputeTargetException, match="partition must be the name of a partition"):
        SlurmCompute.attach_configuration("")
    with pytest.raises(ComputeTargetException, match="options must be flags of sbatch"):
        SlurmCompute.attach_configuration("main", options=[1])


def test_hosts_are_described_by_their_configuration(tmp_path: Path) -> None:
    key = tmp_path / "id"
    key.touch()
    target = SshCompute.attach_configuration(["me@h1", "me@h2"], key=key, slots=4)
    assert target.configuration == {"hosts": ["me@h1", "me@h2"], "key": str(key), "slots": 4}
    assert SshCompute.attach_configuration("me@h1").configuration == {"hosts": ["me@h1"]}
    with pytest.raises(ComputeTargetException, match="key: no file"):
        SshCompute.attach_configuration(["me@h1"], key=tmp_path / "nothing")
    with pytest.raises(ComputeTargetException, match="hosts must be hosts as texts"):
        SshCompute.attach_configuration([])
    with pytest.raises(ComputeTargetException, match="slots must be at least 1"):
        SshCompute.attach_configuration(["me@h1"], slots=0)


def test_a_machine_of_the_sdk_v1_is_one_host(tmp_path: Path) -> None:
    """B2.13."""
    key = tmp_path / "id"
    key.touch()
    target = RemoteCompute.attach_configuration(
        address="10.0.0.1", ssh_port="2222", username="me", private_key_file=key
    )
    assert (target.kind, target.configuration) == ("Remote", {"hosts": ["me@10.0.0.1:2222"], "key": str(key)})
    with pytest.raises(ComputeTargetException, match="password cannot be stored"):
        RemoteCompute.attach_configuration(address="10.0.0.1", username="me", password="secret")
    with pytest.raises(ComputeTargetException, match="address must be"):
        RemoteCompute.attach(FakeYard(), "vm", username="me")


def test_a_cluster_is_deleted_and_never_detached() -> None:
    """B2.12."""
    yard = FakeYard()
    cluster = ComputeTarget(yard, "cluster")
    assert isinstance(cluster, AmlCompute)
    with pytest.raises(ComputeTargetException, match="cannot be detached"):
        cluster.detach()
    cluster.delete()
    assert "cluster" not in yard.computes


def test_a_target_can_be_printed_and_waited_for() -> None:
    """B2.10."""
    target = ComputeTarget(FakeYard(), "local")
    target.wait_for_completion(show_output=True)
    assert repr(target).startswith("LocalTarget(name='local'")
    assert target.serialize()["name"] == "local"


@pytest.mark.parametrize("name", ["", None, 3, "a/b"])
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(ComputeTargetException, match="the name of a compute target must be text"):
        ComputeTarget(FakeYard(), name)
