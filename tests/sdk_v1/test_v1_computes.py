"""Clusters and machines of the SDK v1: what each name comes to on machines of your own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import AmlCompute, ComputeTarget, Estimator, Experiment, RemoteCompute, Workspace
from runyard.errors import ComputeTargetException, UserErrorException
from runyard.sdk.compute.amlcompute import BatchAiCompute, DsvmCompute
from runyard.sdk.compute.amlcompute_status import AmlComputeStatus
from runyard.sdk.compute.hdinsight import HDInsightCompute

_names = (f"v1-{number}" for number in itertools.count())
KEYS = """
    currentNodeCount targetNodeCount nodeStateCounts allocationState allocationStateTransitionTime errors creationTime
    modifiedTime provisioningState provisioningStateTransitionTime scaleSettings vmPriority vmSize
"""
STATES = "preparing running idle unusable leaving preempted"


def test_a_status_has_exactly_the_keys_of_the_sdk_v1(workspace: Workspace) -> None:
    """B2.11: as get_status() and as the attribute of 2018, with these keys and no others."""
    configuration = AmlCompute.provisioning_configuration(
        vm_size="STANDARD_NC6", max_nodes=4, idle_seconds_before_scaledown="120"
    )
    cluster = ComputeTarget.create(workspace, next(_names), configuration)
    status = cluster.get_status().serialize()
    assert set(status) == set(KEYS.split())
    assert set(status["nodeStateCounts"]) == {f"{state}NodeCount" for state in STATES.split()}
    assert status["scaleSettings"] == {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT120S"}
    assert (status["vmSize"], status["vmPriority"]) == ("STANDARD_NC6", "Dedicated")
    assert cluster.status.serialize() == status
    assert AmlComputeStatus.deserialize(status).serialize() == status
    cluster.delete()


def test_a_cluster_has_its_attributes(workspace: Workspace) -> None:
    """B2.12: type, state, sizes, nodes, update and delete are there; detach() of a cluster is refused."""
    cluster = ComputeTarget.create(workspace, next(_names), AmlCompute.provisioning_configuration("any", max_nodes=2))
    assert isinstance(cluster, AmlCompute)
    assert (cluster.type, cluster.provisioning_state) == ("AmlCompute", "Succeeded")
    assert AmlCompute.supported_vmsizes(workspace=workspace)[0]["vCPUs"] >= 1
    assert AmlCompute.list_usages(workspace)[0]["limit"] >= 1
    cluster.update(idle_seconds_before_scaledown=300)
    assert len(cluster.list_nodes()) == 2
    assert list(cluster.get_active_runs()) == []
    assert cluster.get()["configuration"]["vm_size"] == "any"
    assert ComputeTarget.deserialize(workspace, cluster.serialize()).name == cluster.name
    with pytest.raises(ComputeTargetException, match="cannot be detached"):
        cluster.detach()
    cluster.delete()


def test_a_batch_ai_cluster_has_its_own_class(workspace: Workspace) -> None:
    """B2.7, B2.11: a script asks whether a target is a BatchAiCompute, and prints its status."""
    configuration = BatchAiCompute.provisioning_configuration(
        vm_size="STANDARD_D2_V2", autoscale_enabled=True, cluster_min_nodes=0, cluster_max_nodes=2
    )
    name = next(_names)
    target = ComputeTarget.create(workspace, name, configuration)
    target.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
    reopened = ComputeTarget(workspace=workspace, name=name)
    assert type(reopened) is BatchAiCompute
    assert type(workspace.compute_targets()[name]) is BatchAiCompute
    assert reopened.status.serialize()["scaleSettings"]["maxNodeCount"] == 2
    with pytest.raises(ComputeTargetException, match="service that no longer exists"):
        BatchAiCompute.attach(workspace, "other", "/subscriptions/1")
    reopened.delete()


def test_a_dsvm_is_one_node(workspace: Workspace) -> None:
    name = next(_names)
    with pytest.raises(ComputeTargetException):
        DsvmCompute(workspace=workspace, name=name)
    configuration = DsvmCompute.provisioning_configuration(vm_size="Standard_D2_v2", ssh_port=5022)
    target = DsvmCompute.create(workspace, name=name, provisioning_configuration=configuration)
    target.wait_for_completion(show_output=True)
    assert type(DsvmCompute(workspace=workspace, name=name)) is DsvmCompute
    assert target.type == "VirtualMachine"
    assert target.serialize()["configuration"]["no_effect"][0]["argument"] == "ssh_port"
    target.delete()


def test_a_spark_cluster_is_refused_where_scripts_expect_it(workspace: Workspace) -> None:
    """B2.7: attaching raises the exception whose message the notebook prints."""
    configuration = HDInsightCompute.attach_configuration(
        address="c.azurehdinsight.net", username="me", password="secret"
    )
    with pytest.raises(ComputeTargetException) as caught:
        ComputeTarget.attach(workspace=workspace, name="spark", attach_configuration=configuration)
    assert "Spark" in caught.value.message
    with pytest.raises(ComputeTargetException):
        HDInsightCompute(workspace, "spark")


def test_a_missing_remote_machine_is_an_exception(workspace: Workspace) -> None:
    """B2.13"""
    with pytest.raises(ComputeTargetException):
        RemoteCompute(workspace=workspace, name=next(_names))


def test_a_transient_cluster_is_shared_by_runs_of_its_size(
    workspace: Workspace, experiment: Experiment, project: Callable[..., Path]
) -> None:
    """B5.25: an estimator with a vm_size and no target runs on a cluster of that size."""
    estimator = Estimator(
        project(train="print(1)"), vm_size="STANDARD_D2_V2", entry_script="train.py", user_managed=True
    )
    run = experiment.submit(estimator)
    assert run.wait_for_completion()["target"] == "once-standard-d2-v2-8"
    target = workspace.compute_targets["once-standard-d2-v2-8"]
    assert target.serialize()["configuration"]["vm_size"] == "STANDARD_D2_V2"


def test_ignored_arguments_are_stored_with_the_cluster(workspace: Workspace) -> None:
    network = {"vnet_resourcegroup_name": "rg", "vnet_name": "net", "subnet_name": "sub"}
    configuration = AmlCompute.provisioning_configuration(
        max_nodes=1, vm_priority="lowpriority", admin_username="me", admin_user_password="hidden", **network
    )
    name = next(_names)
    target = ComputeTarget.create(workspace, name, configuration)
    notes = ComputeTarget(workspace, name).serialize()["configuration"]["no_effect"]
    assert {note["argument"] for note in notes} == {"vm_priority", "admin_username", *network}
    assert "hidden" not in str(notes)
    # arguments without effect do not make it a different cluster
    same = AmlCompute.provisioning_configuration(max_nodes=1, vm_priority="lowpriority")
    assert ComputeTarget.create(workspace, name, same).name == name
    target.delete()


def test_an_unknown_target_type_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ComputeTargetException, match="without kind, configuration"):
        ComputeTarget.deserialize(workspace, {"name": "x"})
    with pytest.raises(UserErrorException, match="cannot be named 'amlcompute'"):
        ComputeTarget.create(workspace, "amlcompute", AmlCompute.provisioning_configuration(max_nodes=1))
