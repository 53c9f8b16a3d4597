"""The time of a snapshot in a run's timeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment, Workspace
from runyard.client import autostart
from support import a_home, run_view, with_this_python


def test_the_start_of_the_yard_is_not_part_of_the_snapshot(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(train="")
    start_yard = autostart.start_yard
    starts: list[tuple[float, float]] = []

    def timed(*arguments: object) -> object:
        begin = time.time()
        result = start_yard(*arguments)  # type: ignore[arg-type]
        starts.append((begin, time.time()))
        return result

    monkeypatch.setattr(autostart, "start_yard", timed)
    with a_home() as home:
        called_at = time.time()
        run = Experiment(Workspace(home=home), "digits").submit(with_this_python(folder))
        [(begin, end)] = starts
        # the files were read before the yard was started, in this time at most
        assert run_view(run)["timeline"]["Snapshot"] >= end - (begin - called_at)
        run.wait_for_completion()
