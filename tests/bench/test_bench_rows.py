"""Every benchmark runs in a tiny size and measures a number. No test asserts a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import report
from bench.__main__ import ROWS
from bench.rounds import measure_rounds
from bench.row import TINY, Goal, Row, Sample, format_amount, median_of
from bench.sandbox import Sandbox, new_sandbox


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with new_sandbox() as sandbox:
        yield sandbox


@pytest.mark.real
@pytest.mark.parametrize("name", ROWS)
def test_every_row_measures_something(name: str, sandbox: Sandbox) -> None:
    rows = list(ROWS[name](sandbox, TINY))
    assert rows
    for row in rows:
        if row.ours is None:  # not possible in a tiny size; the notes contain the reason
            assert row.notes
            continue
        assert median_of(row.ours) > 0
        assert row.ratio is None or row.ratio > 0
        assert all(median_of(number) > 0 for number in row.peers.values())


def test_contenders_alternate_after_a_warm_up_round() -> None:
    called: list[str] = []

    def contender(name: str, seconds: float) -> Callable[[], float]:
        def work() -> float:
            called.append(name)
            return seconds

        return work

    samples = measure_rounds({"a": contender("a", 1.0), "b": contender("b", 2.0)}, rounds=2)
    assert called == ["a", "b", "a", "b", "b", "a"]
    assert samples == {"a": [1.0, 1.0], "b": [2.0, 2.0]}


@pytest.mark.parametrize(
    ("row", "goal_met"),
    [
        (Row("", 0.020, ("bare", 0.010), Goal(2.5, relative=True)), True),
        (Row("", 0.030, ("bare", 0.010), Goal(2.5, relative=True)), False),
        (Row("", 0.97, ("bare", 1.0), Goal(0.98, relative=True, at_least=True)), False),
        (Row("", 600_000.0, goal=Goal(500_000, at_least=True), unit="/s"), True),
        (Row("", Sample([0.020, 0.010, 0.012]), goal=Goal(0.015)), True),
        (Row("", 1.0), None),
        (Row("", None, goal=Goal(1.0)), None),
    ],
)
def test_goals_are_relative_to_the_baseline_or_absolute(row: Row, goal_met: bool | None) -> None:
    assert row.goal_met is goal_met


def test_rounds_on_both_sides_of_a_goal_are_inconclusive() -> None:
    goal = Goal(0.98, relative=True, at_least=True)
    wild = Row("", Sample([24.0, 135.0, 157.0, 20.0]), ("bare", Sample([31.0, 31.0, 31.0, 31.0])), goal, unit="/s")
    calm = Row("", Sample([100.0, 101.0, 99.5, 100.5]), ("bare", Sample([100.0, 101.0, 100.0, 100.0])), goal, unit="/s")
    assert wild.goal_met
    assert wild.verdict == "inconclusive"
    assert calm.verdict == "met"


def test_amounts_are_formatted_in_readable_units() -> None:
    assert [format_amount(seconds) for seconds in (12.0, 0.0292, 1.1e-6, 0.25e-6)] == [
        "12 s",
        "29.2 ms",
        "1.1 µs",
        "0.25 µs",
    ]
    assert format_amount(612_345.0, "/s") == "612,345/s"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "speed.md"
    page.write_text("# Speed\n\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nbelow\n")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "MEASURED", tmp_path / "measured.json")
    return page


def test_the_text_around_the_table_is_not_changed(page: Path) -> None:
    row = Row("a start", 0.020, ("bare", 0.010), Goal(2.5, relative=True), notes=("quiet",))
    report.write_page({"a": [row]}, ["a"])
    text = page.read_text()
    assert text.startswith("# Speed\n\n<!-- bench: begin -->\n")
    assert "| a start | 20 ms | bare: 10 ms | 2x | ≤ 2.5x | met | quiet | 20" in text
    assert text.endswith("<!-- bench: end -->\nbelow\n")
    assert "old" not in text


def test_earlier_measurements_stay_until_they_are_repeated(page: Path) -> None:
    report.write_page({"b": [Row("b", 2.0)], "a": [Row("a", 1.0)]}, ["a", "b", "c"])
    report.write_page({"a": [Row("a", 3.0)]}, ["a", "b", "c"])
    lines = [line.split(" | ")[:2] for line in page.read_text().splitlines() if line[:4] in ("| a ", "| b ")]
    assert lines == [["| a", "3 s"], ["| b", "2 s"]]
    assert "Not measured yet: `c`" in page.read_text()


def test_a_row_without_measurement_is_listed_with_the_reason(page: Path) -> None:
    row = Row("read", None, notes=("not measured here: no network",))
    assert row.ratio is None
    report.write_page({"read": [row]}, ["read"])
    assert "| read | not measured |" in page.read_text()
    assert "not measured here: no network" in page.read_text()
