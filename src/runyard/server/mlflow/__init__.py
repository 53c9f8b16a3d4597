"""MLflow's REST API on top of the yard's runs: the stock `mlflow` client can log to the yard and search it."""
