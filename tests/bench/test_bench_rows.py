"""Every row of the bench, in a tiny size: it runs, and what it measures is a number. No test asserts a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import report
from bench.__main__ import ROWS
from bench.place import Place, a_place
from bench.row import TINY, Goal, Row, Sample, amount, middle
from bench.turns import in_turns


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place() as made:
        yield made


@pytest.mark.real
@pytest.mark.parametrize("name", ROWS)
def test_every_row_measures_something(name: str, place: Place) -> None:
    rows = list(ROWS[name](place, TINY))
    assert rows
    for row in rows:
        if row.ours is None:  # it needs what a tiny size does without, and says so
            assert row.notes
            continue
        assert middle(row.ours) > 0
        assert row.ratio is None or row.ratio > 0
        assert all(middle(number) > 0 for number in row.peers.values())


def test_contenders_are_taken_in_turns_after_one_round_that_does_not_count() -> None:
    called: list[str] = []

    def contender(name: str, seconds: float) -> Callable[[], float]:
        def work() -> float:
            called.append(name)
            return seconds

        return work

    samples = in_turns({"a": contender("a", 1.0), "b": contender("b", 2.0)}, rounds=2)
    assert called == ["a", "b", "a", "b", "b", "a"]
    assert samples == {"a": [1.0, 1.0], "b": [2.0, 2.0]}


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("", 0.020, ("bare", 0.010), Goal(2.5, times=True)), True),
        (Row("", 0.030, ("bare", 0.010), Goal(2.5, times=True)), False),
        (Row("", 0.97, ("bare", 1.0), Goal(0.98, times=True, at_least=True)), False),
        (Row("", 600_000.0, goal=Goal(500_000, at_least=True), unit="/s"), True),
        (Row("", Sample([0.020, 0.010, 0.012]), goal=Goal(0.015)), True),
        (Row("", 1.0), None),
        (Row("", None, goal=Goal(1.0)), None),
    ],
)
def test_a_goal_is_in_times_of_what_is_beside_it_or_in_its_own_unit(row: Row, met: bool | None) -> None:
    assert row.met is met


def test_rounds_that_lie_on_both_sides_of_a_goal_give_no_verdict() -> None:
    goal = Goal(0.98, times=True, at_least=True)
    wild = Row("", Sample([24.0, 135.0, 157.0, 20.0]), ("bare", Sample([31.0, 31.0, 31.0, 31.0])), goal, unit="/s")
    calm = Row("", Sample([100.0, 101.0, 99.5, 100.5]), ("bare", Sample([100.0, 101.0, 100.0, 100.0])), goal, unit="/s")
    assert wild.met
    assert wild.verdict == "too noisy to say"
    assert calm.verdict == "met"


def test_amounts_are_said_in_the_unit_that_people_would_use() -> None:
    assert [amount(seconds) for seconds in (12.0, 0.0292, 1.1e-6, 0.25e-6)] == ["12 s", "29.2 ms", "1.1 µs", "0.25 µs"]
    assert amount(612_345.0, "/s") == "612,345/s"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "speed.md"
    made.write_text("# Speed\n\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nbelow\n")
    monkeypatch.setattr(report, "PAGE", made)
    monkeypatch.setattr(report, "MEASURED", tmp_path / "measured.json")
    return made


def test_the_page_keeps_what_people_wrote_around_the_table(page: Path) -> None:
    report.write_page({"a": [Row("a start", 0.020, ("bare", 0.010), Goal(2.5, times=True), notes=("quiet",))]}, ["a"])
    text = page.read_text()
    assert text.startswith("# Speed\n\n<!-- bench: begin -->\n")
    assert "| a start | 20 ms | bare: 10 ms | 2x | ≤ 2.5x | met | quiet | 20" in text
    assert text.endswith("<!-- bench: end -->\nbelow\n")
    assert "old" not in text


def test_what_was_measured_before_stays_until_it_is_measured_again(page: Path) -> None:
    report.write_page({"b": [Row("b", 2.0)], "a": [Row("a", 1.0)]}, ["a", "b", "c"])
    report.write_page({"a": [Row("a", 3.0)]}, ["a", "b", "c"])
    lines = [line.split(" | ")[:2] for line in page.read_text().splitlines() if line[:4] in ("| a ", "| b ")]
    assert lines == [["| a", "3 s"], ["| b", "2 s"]]
    assert "Not measured yet: `c`" in page.read_text()


def test_a_peer_that_cannot_be_measured_is_named_and_not_faked(page: Path) -> None:
    row = Row("read", None, notes=("not measured here: no network",))
    assert row.ratio is None
    report.write_page({"read": [row]}, ["read"])
    assert "| read | not measured |" in page.read_text()
    assert "not measured here: no network" in page.read_text()
