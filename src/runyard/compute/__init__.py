"""Compute targets: the places where the processes of runs are started. ``base`` defines the contract."""
