"""Operating-system primitives: atomic file writes, file locks, unix sockets, /proc, namespaces, file hashes,
the capacity of the machine and pip's configuration files.

Standard library only, and independent of every other module of Runyard.
"""
