"""How people's side talks to the yard: HTTP over its unix socket, with the standard library alone.

The same code runs inside training scripts, in users' Pythons, which is why there is no HTTP library here.
"""
