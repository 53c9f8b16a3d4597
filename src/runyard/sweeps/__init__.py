"""Hyperparameter sweeps: child runs proposed, watched and stopped early by the yard."""
