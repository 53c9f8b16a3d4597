"""Metric logging inside a training script: value checks, documents and the memory-mapped journal."""
