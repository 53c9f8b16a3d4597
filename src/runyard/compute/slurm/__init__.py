"""Slurm: `script` renders a batch job, `client` talks to Slurm, `states` reads its words, `compute` is the target."""
