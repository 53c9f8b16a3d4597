"""Our process on the node: it starts the script of one run, bounds it, ends it, and writes down what it saw.

Standard library only, Python 3.9 or newer. It depends on the run's folder and on nothing else: not on the yard.
"""
