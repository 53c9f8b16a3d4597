"""MLflow's model registry over the models of the yard."""
