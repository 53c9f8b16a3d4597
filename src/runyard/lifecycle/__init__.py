"""The state machine of a run: ``step(life, event) -> (life, actions)`` is pure, and the only code that sets states."""
