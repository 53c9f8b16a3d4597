"""How a run may change. ``step(life, event) -> (life, actions)`` is the one author of states, and it is pure."""
