"""The process on a node that starts the script of one run, limits it, stops it, and records what happened.

Standard library only, Python 3.9 or newer. It depends on the run's folder only, not on the yard.
"""
