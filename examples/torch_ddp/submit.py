"""Two nodes, two processes on each, torch's own way of finding each other."""

from runyard import AmlCompute, ComputeTarget, Experiment, PyTorch, Workspace

workspace = Workspace()
cluster = ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
estimator = PyTorch(
    "examples/torch_ddp/project",
    entry_script="train.py",
    compute_target=cluster,
    node_count=2,
    process_count_per_node=2,
    distributed_backend="gloo",
    pip_packages=["scikit-learn"],
)
run = Experiment(workspace, "torch-ddp").submit(estimator)
run.wait_for_completion(show_output=True)
print(f"accuracy {run.get_metrics()['accuracy']:.4f}")
