"""What was asked for: frozen values, no I/O. Everything else in the house may import these."""
