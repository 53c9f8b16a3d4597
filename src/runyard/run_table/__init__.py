"""All runs as an in-memory table, with a small query language and its completion."""
