"""Datastores, what travels to and from them, and the copies of their contents on this machine."""
