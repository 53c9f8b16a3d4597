"""Commands and environment variables of the processes of a run, as pure functions."""
