"""Charts in a real browser: a million points, zoom, tooltips and live points."""

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

VALUES = """
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
def home() -> Iterator[Path]:
    """A home shared by the tests of this module."""
    with a_home() as folder:
        yield folder


@pytest.fixture
def submit(home: Path, project: Callable[..., Path]) -> Callable[[str], Run]:
    def submit_script(script: str) -> Run:
        folder = project(train=script)
        return Experiment(Workspace(home=home), "charts").submit(with_this_python(folder))

    return submit_script


@pytest.fixture(scope="module")
def million(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("million")
    (folder / "train.py").write_text(MILLION)
    run = Experiment(Workspace(home=home), "charts").submit(with_this_python(folder))
    run.wait_for_completion()
    return run


class ChartRequests:
    """Records the requests of a page for chart points."""

    def __init__(self, page: Page) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.bytes = 0
        page.on("requestfinished", self._finished)

    def _finished(self, request: Request) -> None:
        if request.url.endswith("/api/charts"):
            self.bodies.append(json.loads(request.post_data or "{}"))
            self.bytes += len(request.response().body())  # type: ignore[union-attr]


def chart(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=f"{name}: use the arrow keys")


def test_a_million_points_are_one_small_response_with_all_peaks(studio, home, million) -> None:
    tab = studio(home)
    requests = ChartRequests(tab.page)
    page = tab.open(f"/runs/{million.id}")
    plot = chart(page, "loss")
    expect(plot).to_be_visible()
    assert requests.bytes < 60_000
    expect(page.get_by_title("Last value")).to_have_text("0.125")
    plot.focus()
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^step 1,000,000: loss 0.125"))
    page.get_by_role("button", name="Show loss as table").click()
    head = page.get_by_role("region", name="Values").get_by_role("columnheader", name="loss")
    expect(head).to_have_attribute("title", re.compile(r"to 7\.\d+$"))  # the single peak among a million points


def is_zoomed(response: Response) -> bool:
    """False for a pending response of the full range."""
    return response.url.endswith("/api/charts") and json.loads(response.request.post_data or "{}")["from"] is not None


def test_dragging_zooms_to_full_detail(studio, home, million) -> None:
    page = studio(home).open(f"/runs/{million.id}")
    plot = chart(page, "loss")
    expect(plot).to_be_visible()
    expect(page.get_by_role("region", name="Time per phase")).to_be_visible()  # shifts the chart down
    box = plot.bounding_box()
    assert box is not None
    with page.expect_response(is_zoomed) as response:
        drag(page, (box["x"] + 300, box["y"] + 80), (box["x"] + 330, box["y"] + 80))
    body = json.loads(response.value.request.post_data)
    assert 0 < body["from"] < body["to"] < 1_000_000
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    expect(plot).to_have_attribute("aria-valuemin", str(body["from"]))

    # with the keyboard: zoom in several times, then reset
    plot.focus()
    page.keyboard.press("Home")
    for _ in range(5):
        with page.expect_response(is_zoomed):
            page.keyboard.press("+")
    low, high = (float(plot.get_attribute(f"aria-value{edge}") or "nan") for edge in ("min", "max"))
    assert high - low < 3000
    page.keyboard.press("End")
    # at full detail every step exists
    expect(plot).to_have_attribute("aria-valuetext", re.compile(f"^step {int(high):,}:"))
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_hidden()


def test_chart_options_are_part_of_the_url(studio, home, million) -> None:
    page = studio(home).open(f"/runs/{million.id}")
    expect(chart(page, "loss")).to_be_visible()
    page.get_by_role("slider", name="Smoothing").fill("0.6")
    page.get_by_text("Elapsed time", exact=True).click()
    page.get_by_label("Log scale", exact=True).check()
    expect(page).to_have_url(re.compile("smooth=0.6.*axis=relative.*scale=log"))
    page.reload()
    plot = chart(page, "loss")
    plot.focus()
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^after "))
    expect(page.get_by_label("Log scale", exact=True)).to_be_checked()


def test_only_new_points_are_fetched(studio, home, submit, tmp_path) -> None:
    go, stop = tmp_path / "go", tmp_path / "stop"
    run = submit(LIVE.format(go=str(go), stop=str(stop)))
    tab = studio(home)
    requests = ChartRequests(tab.page)
    page = tab.open(f"/runs/{run.id}")
    last = page.get_by_title("Last value")
    expect(last).to_have_text("49")
    go.touch()
    expect(last).to_have_text("4,321")
    stop.touch()
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    full = [body for body in requests.bodies if body["after"] is None]
    assert len(full) == 1  # later requests fetch new points only
    assert requests.bytes < 51 * 24 + 1000


def test_the_tooltip_lists_the_nearest_line_first(studio, home, submit) -> None:
    runs = [submit(f"from runyard import Run\nRun.get_context().log_list('loss', [{n}] * 20)") for n in (1, 2, 3)]
    for run in runs:
        run.wait_for_completion()
    page = studio(home).open(f"/compare?runs={','.join(run.id for run in runs)}")
    plot = chart(page, "loss").first
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 45)
    expect(plot.get_by_role("list", include_hidden=True).locator(".value").first).to_have_text("1")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 16)
    expect(plot.get_by_role("list", include_hidden=True).locator(".value")).to_have_text(["3", "2", "1"])


NOT_FINITE = """
from runyard import Run
run = Run.get_context()
run.log("nothing", float("nan"))
run.log_list("long", [float("nan") if n == 30_000 else n % 10 for n in range(50_000)])
run.log("test/accuracy", 0.9)
labels = [str(n) for n in range(10)]
matrix = {"class_labels": labels, "matrix": [[120 + n for n in range(10)]] * 10}
run.log_confusion_matrix("confusion", {"schema_type": "confusion_matrix", "schema_version": "1.0.0", "data": matrix})
"""


def test_nan_single_values_and_large_matrices_are_displayed(studio, home, submit) -> None:
    runs = [submit(NOT_FINITE) for _ in range(2)]
    for run in runs:
        run.wait_for_completion()
    tab = studio(home)
    page = tab.open(f"/runs/{runs[0].id}")
    expect(page.get_by_role("definition").filter(has_text="NaN")).to_be_visible()
    long = page.get_by_role("figure").filter(has=page.get_by_role("heading", name="long"))
    expect(long.get_by_text("NaN at step 30,000")).to_be_visible()
    plot = chart(page, "long")
    plot.focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    with page.expect_response(is_zoomed):
        page.keyboard.press("+")
    page.keyboard.press("0")
    expect(long.get_by_text("NaN at step 30,000")).to_be_visible()
    matrix = page.get_by_role("region", name="confusion")
    matrix.scroll_into_view_if_needed()
    expect(matrix.get_by_role("row")).to_have_count(11)
    assert matrix.evaluate("element => element.scrollWidth - element.clientWidth") == 0

    page.goto(f"{tab.url}/compare?runs={','.join(run.id for run in runs)}")
    values = page.get_by_role("region", name="test/accuracy: single values")
    expect(values.get_by_role("listitem")).to_have_count(2)
    expect(values.get_by_role("listitem").first).to_contain_text("0.9")
    expect(page.get_by_role("region", name="nothing: single values")).to_contain_text("NaN")
    expect(chart(page, "long")).to_be_visible()
    expect(chart(page, "test/accuracy")).to_have_count(0)


def test_all_kinds_of_values_are_displayed(studio, home, submit) -> None:
    run = submit(VALUES)
    run.wait_for_completion()
    page = studio(home).open(f"/runs/{run.id}")
    expect(page.get_by_role("definition").filter(has_text="0.9731")).to_be_visible()
    expect(chart(page, "train/loss")).to_be_visible()
    matrix = page.get_by_role("region", name="confusion")
    expect(matrix.get_by_role("cell", name="80%")).to_be_visible()
    expect(matrix.get_by_role("rowheader", name="<b>dog")).to_be_visible()
    expect(page.get_by_role("region", name="per class").get_by_role("row")).to_have_count(3)
    for name in ("rates: receiver operating characteristic", "residuals", "predictions", "weights"):
        image = page.get_by_role("img", name=name)
        image.scroll_into_view_if_needed()
        expect(image).to_be_visible()
    expect(page.get_by_text("area 0.9").first).to_be_visible()
    expect(page.get_by_text("<script>alert(1)</script> once upon a time")).to_be_visible()


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
