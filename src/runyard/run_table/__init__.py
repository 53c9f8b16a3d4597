"""Runs as a table: rows straight from SQL, found by a small query language, with completion."""
