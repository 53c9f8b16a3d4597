"""Supervision of a run's processes from start to end."""
