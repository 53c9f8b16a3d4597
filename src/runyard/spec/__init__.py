"""Specifications of runs, sweeps, services and datasets: frozen values without I/O, importable from every package."""
