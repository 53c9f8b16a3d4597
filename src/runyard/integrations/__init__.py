"""Loggers for training frameworks. Each module imports its framework; importing `runyard` imports none of them."""
