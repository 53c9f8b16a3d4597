"""Checks of everything that a yard stores. They read files and change none; a yard may be running meanwhile."""
