"""The yard's HTTP API. A route parses, calls one room, presents; it decides nothing."""
