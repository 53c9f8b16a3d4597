"""Two nodes, two workers and one parameter server, which find each other in TF_CONFIG."""

from runyard import AmlCompute, ComputeTarget, Experiment, TensorFlow, Workspace

workspace = Workspace()
cluster = ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
estimator = TensorFlow(
    "examples/tf_parameter_server/project",
    entry_script="train.py",
    compute_target=cluster,
    node_count=2,
    worker_count=2,
    parameter_server_count=1,
    distributed_backend="ps",
    pip_packages=["scikit-learn"],
)
run = Experiment(workspace, "tf-parameter-server").submit(estimator)
run.wait_for_completion(show_output=True)
print(run.get_metrics()["accuracy"])
