"""Registered models: what runs brought forth, in versions, with where it came from."""
