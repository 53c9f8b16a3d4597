"""Export of runs as tables, and import of runs from the files of MLflow, TensorBoard and W&B."""
