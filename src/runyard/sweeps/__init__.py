"""Sweeps: children of one run, each with values of its own, proposed, watched and ended early by the yard."""
