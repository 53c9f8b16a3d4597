"""The layout of every page in a real browser: sticky headers, wide screens, and phones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from runyard import Dataset, Experiment, LocalWebservice, Model, Workspace
from runyard.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from service_support import TIMES, scoring_config
from studio_support import fill_home
from support import a_home, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

WIDE = {"width": 1920, "height": 1080}
PHONE = {"width": 390, "height": 844}
LONG = "a-name-that-is-longer-than-the-screen-of-a-phone-is-wide"
SCRIPT = f"""\
import json, os, sys
from runyard import Run
run = Run.get_context()
for step in range(20):
    run.log("train/loss", float(sys.argv[2]) / (1 + step))
    run.log("{LONG}/accuracy", step * float(sys.argv[2]))
run.log("test/accuracy", float(sys.argv[2]))
print("one line of the log that is longer than a phone is wide: " + "x" * 200)
labels = [f"class {{n}} of {LONG}" for n in range(10)]
matrix = {{"class_labels": labels, "matrix": [[120 + 7 * n for n in range(10)]] * 10}}
run.log_confusion_matrix("confusion", {{"schema_type": "confusion_matrix", "schema_version": "1.0.0", "data": matrix}})
run.log_table("per class", {{"class": labels, "accuracy": [0.9] * 10}})
os.makedirs("outputs", exist_ok=True)
with open("outputs/{LONG}.json", "w") as file:
    json.dump(3, file)
"""


@dataclass
class Fixtures:
    home: Path
    runs: list[str]
    sweep: str


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fixtures]:
    """Content for every page, with long names: runs, a sweep, a model, a service and a dataset."""
    folder = tmp_path_factory.mktemp("layout")
    (folder / "train.py").write_text(SCRIPT)
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        fill_home(home, 200)
        patch.setenv("RUNYARD_HOME", str(home))
        ws = Workspace()
        experiment = Experiment(ws, LONG)
        runs = [experiment.submit(with_this_python(folder, "train.py", ["--factor", n])) for n in (1, 2, 3)]
        space = GridParameterSampling({"--factor": choice(1, 2)})
        config = with_this_python(folder, "train.py")
        goal = PrimaryMetricGoal.MAXIMIZE
        sweep = experiment.submit(HyperDriveConfig(space, "test/accuracy", goal, 2, 2, run_config=config))
        for run in [*runs, sweep]:
            run.wait_for_completion()
        for run in runs[:2]:
            run.tag("description", f"{LONG} {LONG}")
            run.register_model("digits", f"outputs/{LONG}.json", tags={"team": LONG}, model_framework="PyTorch")
        store = ws.get_default_datastore()
        store.upload_files([str(folder / "train.py")], target_path=LONG, show_progress=False)
        Dataset.File.from_files((store, f"{LONG}/")).register(ws, "digits")
        code = scoring_config(folder / "code", TIMES.replace("MODEL", "digits"))
        service = Model.deploy(
            ws, "digits-svc", [Model(ws, name="digits")], code, LocalWebservice.deploy_configuration()
        )
        service.wait_for_deployment()
        service.run('{"data": [1]}')
        yield Fixtures(home, [run.id for run in runs], sweep.id)


OVERFLOW = """() => {
    const frames = [document.documentElement, document.querySelector("main")];
    return Math.max(...frames.map((frame) => frame.scrollWidth - frame.clientWidth));
}"""


def overflow(page: Page) -> int:
    """The number of pixels by which the content is wider than the screen; scrolling frames inside it are fine."""
    pixels: int = page.evaluate(OVERFLOW)
    return pixels


def show(page: Page, path: str) -> None:
    """Go to another page as a click on a link does: without loading the studio again."""
    page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def box(locator: Locator) -> dict[str, float]:
    rectangle: dict[str, float] = locator.evaluate("element => element.getBoundingClientRect().toJSON()")
    return rectangle


def test_the_column_header_stays_while_the_rows_scroll(studio: Callable[..., object], fixtures: Fixtures) -> None:
    page: Page = studio(fixtures.home, **WIDE).open("/runs")  # type: ignore[attr-defined]
    expect(page.get_by_text("206 runs")).to_be_visible()
    grid = page.get_by_role("grid")
    header = page.get_by_role("columnheader", name="Status")
    top = box(header)["top"]
    grid.evaluate("grid => grid.scrollTop = 34 * 100")
    expect(page.locator("#run-row-105")).to_be_visible()
    assert box(header)["top"] == top
    # the header is on top of the rows, not behind them
    on_top = header.evaluate(
        "(head, top) => head.contains(document.elementFromPoint(head.getBoundingClientRect().left + 15, top + 17))", top
    )
    assert on_top
    assert page.get_by_role("main").evaluate("main => main.scrollHeight - main.clientHeight") == 0

    # the table is as wide as the screen, and no column is cut off
    rectangle = box(grid)
    assert rectangle["right"] == WIDE["width"]
    assert rectangle["left"] == box(page.get_by_role("navigation"))["right"]
    last = page.get_by_role("columnheader").last
    assert WIDE["width"] - 20 <= box(last)["right"] <= WIDE["width"]
    assert box(page.locator("#run-row-105 > [role=gridcell]").last)["right"] == box(last)["right"]


def test_a_page_with_many_columns_scrolls_inside_the_table(studio: Callable[..., object], fixtures: Fixtures) -> None:
    columns = (
        "status,name,experiment,created_at,duration_s,params.lr,params.layers,metrics.loss,metrics.accuracy,reason"
    )
    page: Page = studio(fixtures.home, width=1020).open(f"/runs?cols={columns}")  # type: ignore[attr-defined]
    last = page.get_by_role("columnheader").last
    expect(last).to_be_visible()
    assert overflow(page) == 0
    page.get_by_role("grid").evaluate("grid => grid.scrollLeft = grid.scrollWidth")
    assert box(last)["right"] <= 1020


def test_no_page_is_wider_than_a_phone(studio: Callable[..., object], fixtures: Fixtures) -> None:
    first, second, third = fixtures.runs
    run, sweep, compare = f"/runs/{first}", f"/runs/{fixtures.sweep}", f"/compare?runs={first},{second},{third}"
    pages = {
        "/runs": "206 runs",
        "/runs?q=nothing": "No matching runs",
        f"/runs?sel={first},{second}": "2 runs selected",
        run: "train/loss",
        f"{run}?tab=logs": "one line of the log",
        f"{run}?tab=files": f"{LONG}.json",
        f"{run}?tab=code": "run.log_confusion_matrix",
        f"{run}?tab=code&against={second}": "same code",
        f"{run}?tab=environment": "Lock file",
        f"{run}?tab=details": "max_attempts",
        f"{run}?tab=system": "No system metrics",
        sweep: "Drag along an axis",
        f"{sweep}?tab=charts": "test/accuracy",
        f"{sweep}?tab=logs": "the sweep has completed",
        f"{sweep}?tab=environment": "Open child",
        f"{sweep}?tab=system": "Open child",
        f"{sweep}?tab=details": "primary_metric_goal",
        compare: "train/loss",
        f"{compare}&tab=differences": "Show differences only",
        f"{compare}&tab=parallel": "Drag along an axis",
        f"{compare}&tab=scatter": "Hover over a point",
        f"{compare}&tab=code": "same code",
        f"{compare}&tab=environment": "same packages",
        "/compare": "Compare runs side by side",
        "/models": "PyTorch",
        "/models/digits": "Stage and aliases",
        "/models/digits?tab=files": f"{LONG}.json",
        "/models/digits?tab=versions": "Compare with 2",
        "/models/digits?tab=lineage": "digits-svc",
        "/models/digits?tab=compare": "identical files",
        "/services": "digits-svc",
        "/services/digits-svc": "Requests per second",
        "/services/digits-svc?tab=try": "declares no example",
        "/services/digits-svc?tab=requests": "Errors only",
        "/services/digits-svc?tab=log": "this-python",
        "/services/digits-svc?tab=settings": "OpenAPI",
        "/data": "Newest version",
        "/data?tab=stores": "workspaceartifactstore",
        "/data?tab=transfers": "1 of 1 file",
        "/data/datasets/digits": "Lineage",
        f"/data/stores/workspaceblobstore?path={LONG}": "train.py",
        "/computes": "Create a cluster",
        "/environments": "No environments yet",
        "/nothing": "Page not found",
    }
    too_wide = {}
    page: Page = studio(fixtures.home, **PHONE).open()  # type: ignore[attr-defined]
    for path, text in pages.items():
        show(page, path)
        expect(page.get_by_role("main").get_by_text(text).filter(visible=True).first, path).to_be_visible()
        if overflow(page):
            too_wide[path] = overflow(page)
    assert too_wide == {}


def test_no_empty_page_is_wider_than_a_phone(studio: Callable[..., object], own_home: Path) -> None:
    page: Page = studio(own_home, **PHONE).open()  # type: ignore[attr-defined]
    pages = {
        "/runs": "No runs yet",
        "/compare": "Compare runs side by side",
        "/models": "No models yet",
        "/services": "No services yet",
        "/data": "No datasets yet",
        "/data?tab=transfers": "No transfers",
        "/environments": "No environments yet",
    }
    for path, title in pages.items():
        show(page, path)
        expect(page.get_by_role("main").get_by_role("heading", level=2, name=title), path).to_be_visible()
        assert overflow(page) == 0, path
