"""Runs as Slurm jobs, submitted on the yard's machine or on a login node."""
