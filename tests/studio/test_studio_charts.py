"""Charts in a real browser: a million points, zoom at full detail, what is pointed at, and points as they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, Response, expect

from runyard import Experiment, Run, Workspace
from support import a_home, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

MILLION = """
import math
from runyard import Run
run = Run.get_context()
for i in range(1_000_000):
    run.log("loss", math.exp(-i / 2e5) + (7 if i == 333_333 else 0), step=i)
run.log("loss", 0.125, step=1_000_000)
"""

PICTURES = """
from runyard import Run
run = Run.get_context()
for i in range(300):
    run.log("train/loss", 1 / (i + 1), step=i)
    run.log("train/reward", float("nan") if i == 150 else i, step=i)
run.log("accuracy", 0.9731)
run.log_row("per class", label="cat", recall=0.88)
run.log_row("per class", label="dog", recall=0.93)
run.log_confusion_matrix("confusion", {"schema_type": "confusion_matrix", "schema_version": "v1",
    "data": {"class_labels": ["cat", "<b>dog"], "matrix": [[8, 2], [1, 9]]}})
table = [[5, 5, 0, 0], [5, 1, 4, 0], [3, 0, 5, 2], [0, 0, 5, 5]]
run.log_accuracy_table("rates", {"schema_type": "accuracy_table", "schema_version": "v1", "data": {
    "class_labels": ["cat", "dog"], "probability_tables": [table, table], "percentile_tables": [table, table],
    "probability_thresholds": [0, 0.3, 0.6, 1], "percentile_thresholds": [0, 0.3, 0.6, 1]}})
run.log_residuals("residuals", {"schema_type": "residuals", "schema_version": "v1",
    "data": {"bin_edges": [-1, 0, 1, 2], "bin_counts": [3, 8, 1]}})
run.log_predictions("predictions", {"schema_type": "predictions", "schema_version": "v1", "data": {
    "bin_averages": [1, 2], "bin_errors": [0.1, 0.2], "bin_counts": [5, 5], "bin_edges": [0, 1, 2]}})
run.log_histogram("weights", [0.1, 0.2, 0.2, 0.9])
run.log_text("sample", "<script>alert(1)</script> once upon a time")
"""

LIVE = """
import pathlib, time
from runyard import Run
run = Run.get_context()
run.log_list("loss", list(range(50)))
while not pathlib.Path({go!r}).exists():
    time.sleep(0.02)
run.log("loss", 4321)
while not pathlib.Path({stop!r}).exists():
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The home of a yard for the tests of this file."""
    with a_home() as home:
        yield home


@pytest.fixture
def submitted(place: Path, project: Callable[..., Path]) -> Callable[[str], Run]:
    def submit(script: str) -> Run:
        folder = project(train=script)
        return Experiment(Workspace(home=place), "charts").submit(with_this_python(folder))

    return submit


@pytest.fixture(scope="module")
def million(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("million")
    (folder / "train.py").write_text(MILLION)
    run = Experiment(Workspace(home=place), "charts").submit(with_this_python(folder))
    run.wait_for_completion()
    return run


class Asked:
    """What a page asked for points."""

    def __init__(self, page: Page) -> None:
        self.all: list[dict[str, Any]] = []
        self.bytes = 0
        page.on("requestfinished", self._finished)

    def _finished(self, request: Request) -> None:
        if request.url.endswith("/api/charts"):
            self.all.append(json.loads(request.post_data or "{}"))
            self.bytes += len(request.response().body())  # type: ignore[union-attr]


def chart(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=f"{name}: arrow keys")


def test_a_million_points_are_one_small_answer_with_every_peak(studio, place, million) -> None:
    tab = studio(place)
    asked = Asked(tab.page)
    page = tab.open(f"/runs/{million.id}")
    plot = chart(page, "loss")
    expect(plot).to_be_visible()
    assert asked.bytes < 60_000
    expect(page.get_by_title("the last value")).to_have_text("0.125")
    plot.focus()
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^step 1,000,000: loss 0.125"))
    page.get_by_role("button", name="loss as a table").click()
    head = page.get_by_role("region", name="Values").get_by_role("columnheader", name="loss")
    expect(head).to_have_attribute("title", re.compile(r"to 7\.\d+$"))  # the one point among a million


def of_a_part(answer: Response) -> bool:
    """An answer of the whole range may still be on its way."""
    return answer.url.endswith("/api/charts") and json.loads(answer.request.post_data or "{}")["from"] is not None


def test_dragging_zooms_and_the_part_comes_at_full_detail(studio, place, million) -> None:
    page = studio(place).open(f"/runs/{million.id}")
    plot = chart(page, "loss")
    expect(plot).to_be_visible()
    expect(page.get_by_role("region", name="Time budget")).to_be_visible()  # it pushes the chart down
    box = plot.bounding_box()
    assert box is not None
    with page.expect_response(of_a_part) as answer:
        drag(page, (box["x"] + 300, box["y"] + 80), (box["x"] + 330, box["y"] + 80))
    wanted = json.loads(answer.value.request.post_data)
    assert 0 < wanted["from"] < wanted["to"] < 1_000_000
    expect(page.get_by_role("button", name="Whole range")).to_be_visible()
    expect(plot).to_have_attribute("aria-valuemin", str(wanted["from"]))

    # by the keyboard too, in and in again, and out at once
    plot.focus()
    page.keyboard.press("Home")
    for _ in range(5):
        with page.expect_response(of_a_part):
            page.keyboard.press("+")
    low, high = (float(plot.get_attribute(f"aria-value{edge}") or "nan") for edge in ("min", "max"))
    assert high - low < 3000
    page.keyboard.press("End")
    # every single step is there, up to the edge
    expect(plot).to_have_attribute("aria-valuetext", re.compile(f"^step {int(high):,}:"))
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Whole range")).to_be_hidden()


def test_how_charts_are_drawn_is_in_the_address(studio, place, million) -> None:
    page = studio(place).open(f"/runs/{million.id}")
    expect(chart(page, "loss")).to_be_visible()
    page.get_by_role("slider", name="Smoothing").fill("0.6")
    page.get_by_text("Duration", exact=True).click()
    page.get_by_label("Log scale", exact=True).check()
    expect(page).to_have_url(re.compile("smooth=0.6.*axis=relative.*scale=log"))
    page.reload()
    plot = chart(page, "loss")
    plot.focus()
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^after "))
    expect(page.get_by_label("Log scale", exact=True)).to_be_checked()


def test_new_points_come_alone_and_without_a_reload(studio, place, submitted, tmp_path) -> None:
    go, stop = tmp_path / "go", tmp_path / "stop"
    run = submitted(LIVE.format(go=str(go), stop=str(stop)))
    tab = studio(place)
    asked = Asked(tab.page)
    page = tab.open(f"/runs/{run.id}")
    last = page.get_by_title("the last value")
    expect(last).to_have_text("49")
    go.touch()
    expect(last).to_have_text("4,321")
    stop.touch()
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    whole = [one for one in asked.all if one["after"] is None]
    assert len(whole) == 1  # everything once; then only what came after it
    assert asked.bytes < 51 * 24 + 1000


def test_pointing_names_the_lines_nearest_first(studio, place, submitted) -> None:
    runs = [submitted(f"from runyard import Run\nRun.get_context().log_list('loss', [{n}] * 20)") for n in (1, 2, 3)]
    for run in runs:
        run.wait_for_completion()
    page = studio(place).open(f"/compare?runs={','.join(run.id for run in runs)}")
    plot = chart(page, "loss").first
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 45)
    expect(plot.get_by_role("list", include_hidden=True).locator(".value").first).to_have_text("1")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 16)
    expect(plot.get_by_role("list", include_hidden=True).locator(".value")).to_have_text(["3", "2", "1"])


def test_everything_that_can_be_logged_is_a_picture(studio, place, submitted) -> None:
    run = submitted(PICTURES)
    run.wait_for_completion()
    page = studio(place).open(f"/runs/{run.id}")
    expect(page.get_by_role("definition").filter(has_text="0.9731")).to_be_visible()
    expect(chart(page, "train/loss")).to_be_visible()
    matrix = page.get_by_role("region", name="confusion")
    expect(matrix.get_by_role("cell", name="80%")).to_be_visible()
    expect(matrix.get_by_role("rowheader", name="<b>dog")).to_be_visible()
    expect(page.get_by_role("region", name="per class").get_by_role("row")).to_have_count(3)
    for name in ("rates: receiver operating characteristic", "residuals", "predictions", "weights"):
        picture = page.get_by_role("img", name=name)
        picture.scroll_into_view_if_needed()
        expect(picture).to_be_visible()
    expect(page.get_by_text("area 0.9").first).to_be_visible()
    expect(page.get_by_text("<script>alert(1)</script> once upon a time")).to_be_visible()


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
