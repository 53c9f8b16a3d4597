"""State names that are duplicated because importing the lifecycle would slow down every script."""

from __future__ import annotations

from runyard.lifecycle.state import TERMINAL
from runyard.spec.names import TERMINAL_STATES


def test_terminal_state_names_match_the_lifecycle() -> None:
    assert {state.value for state in TERMINAL} == TERMINAL_STATES
