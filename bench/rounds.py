"""Measures contenders alternately."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from time import perf_counter

from bench.row import Sample

Contender = Callable[[], float]
"""Does its work once and returns the measured seconds."""


def measure_rounds(contenders: Mapping[str, Contender], rounds: int, *, rest_s: float = 0.0) -> dict[str, Sample]:
    """Run every contender once to warm up, then all of them in each round, in alternating order.

    Args:
        contenders: The contenders by name.
        rounds: Number of rounds.
        rest_s: Seconds to sleep before each measurement, so that clean-up of the previous one is not counted.
    """
    samples = {name: Sample() for name in contenders}
    for contender in contenders.values():
        contender()
    for number in range(rounds):
        order = list(contenders) if number % 2 == 0 else list(reversed(contenders))
        for name in order:
            gc.collect()
            time.sleep(rest_s)
            samples[name].append(contenders[name]())
    return samples


def timed(work: Callable[[], object]) -> Contender:
    def measure() -> float:
        started_at = perf_counter()
        work()
        return perf_counter() - started_at

    return measure
