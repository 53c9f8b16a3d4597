"""Communication between the agents of a run on several nodes."""
