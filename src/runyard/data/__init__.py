"""Datastores, transfers to and from them, and the local cache of their contents."""
