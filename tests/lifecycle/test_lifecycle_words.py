"""The words of the lifecycle, where they stand a second time because importing it would cost every script."""

from __future__ import annotations

from runyard.lifecycle.state import TERMINAL
from runyard.spec.names import ENDED


def test_the_words_of_ended_runs_are_the_same_everywhere() -> None:
    assert {state.value for state in TERMINAL} == ENDED
