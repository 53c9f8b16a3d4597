"""Four ranks on two nodes with MPI, without a framework: the base Estimator and mpi4py."""

from runyard import AmlCompute, ComputeTarget, Estimator, Experiment, Mpi, Workspace

workspace = Workspace()
cluster = ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
estimator = Estimator(
    "examples/mpi4py_digits/project",
    entry_script="train.py",
    compute_target=cluster,
    node_count=2,
    distributed_training=Mpi(process_count_per_node=2),
    pip_packages=["mpi4py", "numpy", "scikit-learn"],
)
run = Experiment(workspace, "mpi4py").submit(estimator)
run.wait_for_completion(show_output=True)
print(f"accuracy {run.get_metrics()['accuracy']:.4f} on {run.get_metrics()['ranks']} ranks")
