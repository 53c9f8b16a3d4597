"""SSH hosts. ``host`` is the yard's end of one connection, ``courier`` the other end, on the host itself.

What the host runs (``arrival``, ``courier``, ``frames``, ``trail``, ``errands``) is standard library only, Python 3.9.
"""
