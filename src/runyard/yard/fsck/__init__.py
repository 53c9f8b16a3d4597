"""Checks of everything that a yard stores. They change no files, and a yard may be running."""
