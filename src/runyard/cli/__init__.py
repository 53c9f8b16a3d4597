"""The command line. `main.py` is its table of contents; every verb is a module that is imported when it is called."""
