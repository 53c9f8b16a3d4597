"""Runs to and from other programs: exports as tables, imports of what MLflow, TensorBoard and W&B left on disk."""
