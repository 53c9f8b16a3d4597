"""A simulated cluster on this machine, as scripts for SDK v1 create and use one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import AmlCompute, ComputeTarget, Experiment, PyTorch, ScriptRunConfig, Workspace
from runyard.errors import ComputeTargetException, TrainingException, UserErrorException
from support import eventually

_names = (f"cluster-{number}" for number in itertools.count())


@pytest.fixture
def cluster(workspace: Workspace) -> Iterator[AmlCompute]:
    target = ComputeTarget.create(
        workspace, next(_names), AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)
    )
    assert isinstance(target, AmlCompute)
    yield target
    target.delete()


def test_a_cluster_is_created_found_updated_and_deleted(workspace: Workspace) -> None:
    """B2.7, B2.8, B2.10, B2.12: the cell of every notebook, and what follows it."""
    name = next(_names)
    with pytest.raises(ComputeTargetException, match=f"no compute target named '{name}'"):
        ComputeTarget(workspace=workspace, name=name)
    target = ComputeTarget.create(workspace, name, AmlCompute.provisioning_configuration(max_nodes=4))
    target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
    cluster = ComputeTarget(workspace=workspace, name=name)
    assert type(cluster) is AmlCompute
    assert (cluster.type, cluster.provisioning_state) == ("AmlCompute", "Succeeded")
    assert workspace.compute_targets[name].name == name
    status = cluster.get_status().serialize()
    assert status["scaleSettings"] == {
        "minNodeCount": 0,
        "maxNodeCount": 4,
        "nodeIdleTimeBeforeScaleDown": "PT1800S",
    }
    assert status["nodeStateCounts"]["idleNodeCount"] == 4
    assert cluster.status.serialize() == status
    cluster.update(max_nodes=2, idle_seconds_before_scaledown="300")
    assert [node["nodeState"] for node in cluster.list_nodes()] == ["idle", "idle"]
    with pytest.raises(ComputeTargetException, match="cannot be detached"):
        cluster.detach()
    cluster.delete()
    with pytest.raises(ComputeTargetException):
        ComputeTarget(workspace=workspace, name=name)


def test_an_existing_name_is_refused_unless_the_configuration_is_the_same(
    workspace: Workspace, cluster: AmlCompute
) -> None:
    same = AmlCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)
    assert ComputeTarget.create(workspace, cluster.name, same).name == cluster.name
    with pytest.raises(ComputeTargetException, match="a different compute target named"):
        ComputeTarget.create(workspace, cluster.name, AmlCompute.provisioning_configuration(max_nodes=9))
    with pytest.raises(UserErrorException, match="cannot be named 'local'"):
        ComputeTarget.create(workspace, "local", same)


def test_more_nodes_than_the_cluster_can_ever_have_are_refused(
    experiment: Experiment, cluster: AmlCompute, project
) -> None:
    estimator = PyTorch(
        project(train="print(1)"),
        entry_script="train.py",
        compute_target=cluster,
        node_count=5,
        distributed_backend="gloo",
    )
    with pytest.raises(ComputeTargetException, match=r"requests 5 nodes; cluster '.*' has at most 4"):
        experiment.submit(estimator)
    assert list(experiment.get_runs()) == []


def test_a_local_run_has_one_node(experiment: Experiment, project) -> None:
    estimator = PyTorch(
        project(train="print(1)"),
        entry_script="train.py",
        compute_target="local",
        node_count=2,
        distributed_backend="gloo",
    )
    with pytest.raises(ComputeTargetException, match="requests 2 nodes; 'local' is one machine"):
        experiment.submit(estimator)


def test_several_nodes_without_a_backend_are_refused(cluster: AmlCompute) -> None:
    with pytest.raises(TrainingException, match="several processes need a distributed_training"):
        PyTorch(".", entry_script="train.py", compute_target=cluster, node_count=2)


def test_a_run_that_waits_for_nodes_reports_it(
    experiment: Experiment, cluster: AmlCompute, project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    folder = project(train=f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)")

    def submitted() -> object:
        config = ScriptRunConfig(folder, script="train.py", compute_target=cluster)
        config.run_config.environment.python.user_managed_dependencies = True
        return experiment.submit(config)

    runs = [submitted() for _ in range(4)]
    eventually(lambda: cluster.get_status().running_node_count == 4, "four runs have a node each")
    runs.append(submitted())
    eventually(lambda: runs[4].get_status() == "Queued", "the fifth waits")
    assert "waiting for 1 node; 4 of 4 in use" in runs[4].activity
    with pytest.raises(ComputeTargetException, match="is in use by"):
        cluster.delete()
    cluster.update(max_nodes=5)
    eventually(lambda: runs[4].get_status() == "Running", "a larger cluster has room for it")
    gate.touch()
    for run in runs:
        assert run.wait_for_completion()["status"] == "Completed"
