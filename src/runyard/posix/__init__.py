"""Operating-system primitives: atomic file writes, file locks, unix sockets, /proc, namespaces and file hashes.

Standard library only, and independent of every other module of Runyard.
"""
