"""Drives the state of runs: loads a run, decides with `lifecycle.step`, saves, and performs the actions."""
