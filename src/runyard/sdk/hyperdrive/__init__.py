"""The classes of the SDK v1's HyperDrive, in modules of the same names."""
