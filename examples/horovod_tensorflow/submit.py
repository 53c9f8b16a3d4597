"""Two nodes, one rank on each, by MPI."""

from runyard import AmlCompute, ComputeTarget, Experiment, TensorFlow, Workspace

workspace = Workspace()
cluster = ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
estimator = TensorFlow(
    "examples/horovod_tensorflow/project",
    entry_script="train.py",
    compute_target=cluster,
    node_count=2,
    process_count_per_node=1,
    distributed_backend="mpi",
    pip_packages=["scikit-learn"],
)
run = Experiment(workspace, "horovod-tensorflow").submit(estimator)
run.wait_for_completion(show_output=True)
print(f"accuracy {run.get_metrics()['accuracy']:.4f} on {run.get_metrics()['ranks']} ranks")
