"""Taking contenders in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from time import perf_counter

from bench.row import Sample

Contender = Callable[[], float]
"""Does its work once and says how many seconds of it count."""


def in_turns(contenders: Mapping[str, Contender], rounds: int, *, rest_s: float = 0.0) -> dict[str, Sample]:
    """Every contender once unmeasured, then all of them in each round, forwards and backwards by turns.

    ``rest_s`` is slept before each: whoever came before may still be tidying up, and that is not this one's cost.
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


def seconds_of(work: Callable[[], object]) -> Contender:
    def timed() -> float:
        began = perf_counter()
        work()
        return perf_counter() - began

    return timed
