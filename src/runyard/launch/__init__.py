"""What a process of a run is started as: pure functions from a spec and what was prepared to argv and variables."""
