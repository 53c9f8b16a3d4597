"""A chief, a worker and a parameter server, for TensorFlow 2's ParameterServerStrategy."""

from runyard import AmlCompute, ComputeTarget, Experiment, ParameterServer, TensorFlow, Workspace

workspace = Workspace()
cluster = ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
estimator = TensorFlow(
    "examples/tf_strategy/project",
    entry_script="train.py",
    compute_target=cluster,
    node_count=2,
    distributed_training=ParameterServer(worker_count=2, parameter_server_count=1, chief=True),
    pip_packages=["scikit-learn"],
)
run = Experiment(workspace, "tf-strategy").submit(estimator)
run.wait_for_completion(show_output=True)
print(f"accuracy {run.get_metrics()['accuracy']:.4f}")
