"""Benchmarks: `make bench`, or `python -m bench submit log` for some of them; `--quick` measures fewer rounds.

Each benchmark measures its contenders alternately on the same machine, so that noise affects all of them; the ratios
matter. A peer that cannot be installed is listed as not measured. No number is copied from other sources.
"""
