"""The names of the SDK v1's HyperDrive, one module for each of its own."""
