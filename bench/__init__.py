"""Speed, side by side: `make bench`; `python -m bench submit log` for some rows, `--quick` for a first look.

Every row takes its contenders in turns, in one run on one machine, so that a noisy minute falls on all of them; what
counts is the ratio. A peer that cannot be installed here is named as not measured. Nothing is copied from elsewhere.
"""
