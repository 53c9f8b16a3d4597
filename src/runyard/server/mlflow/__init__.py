"""MLflow's REST API over the yard's own runs, so that the stock `mlflow` client logs into it and searches it."""
