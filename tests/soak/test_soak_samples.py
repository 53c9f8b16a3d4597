"""The decision of the soak test whether memory and descriptors stay flat."""

from __future__ import annotations

import os

from soak.samples import Sample, take, trends


def series(pid: int, *megabytes: float) -> list[Sample]:
    return [Sample(pid, value, 50, 10) for value in megabytes]


def test_noise_and_peaks_are_flat() -> None:
    memory = trends(series(1, *[100 + n % 7 for n in range(200)], 400, *[103] * 100))[0]
    assert memory.is_flat
    assert memory.peak == 400


def test_growth_is_not_flat() -> None:
    assert not trends(series(1, *[100 + n for n in range(200)]))[0].is_flat


def test_descriptors_that_are_never_closed_are_not_flat() -> None:
    samples = [Sample(1, 100.0, 50 + n, 10) for n in range(200)]
    assert [trend.is_flat for trend in trends(samples)] == [True, False, True]


def test_a_process_that_replaced_another_is_judged_by_its_own_life() -> None:
    samples = series(1, *[50.0] * 20) + series(2, *[120.0] * 80)
    assert all(trend.is_flat for trend in trends(samples))


def test_a_sample_of_this_process() -> None:
    sample = take(os.getpid())
    assert sample is not None
    assert sample.megabytes > 1
    assert sample.descriptors > 2
    assert take(2**22 + 1) is None
