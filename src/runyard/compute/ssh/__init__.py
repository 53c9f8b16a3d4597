"""SSH hosts. ``host`` is the yard's side of a connection, ``remote_agent`` the side that runs on the host.

The modules that run on hosts (``remote_agent``, ``remote_operations``, ``framing``, ``file_sync``, ``socket_forward``)
use only the standard library and support Python 3.9.
"""
