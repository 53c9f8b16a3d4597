"""The pages Compare, Computes and Environments in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runyard import AmlCompute, ComputeTarget, Experiment, Run, Workspace
from support import a_home, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

TRAIN = """
import sys
from runyard import Run
run = Run.get_context()
lr = float(sys.argv[2])
for step in range(50):
    run.log("loss", {scale} / (1 + step * lr))
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Run]]]:
    """A home with three finished runs: two with the same code and different lr, one with different code."""
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNYARD_HOME", str(home))
        folder = tmp_path_factory.mktemp("project")
        runs = []
        for lr, scale in ((0.1, 1), (0.2, 1), (0.4, 3)):
            (folder / "train.py").write_text(TRAIN.format(scale=scale))
            runs.append(Experiment(Workspace(), "digits").submit(with_this_python(folder, arguments=["--lr", lr])))
            runs[-1].wait_for_completion()
        yield home, runs


def test_selected_runs_are_compared(studio, three) -> None:
    home, runs = three
    page = studio(home).open("/runs")
    page.get_by_role("checkbox", name=f"Select {runs[0].id}").click()
    page.get_by_role("checkbox", name=f"Select {runs[2].id}").click()
    page.keyboard.press("c")
    compared = page.get_by_role("list", name="Compared runs")
    expect(compared.get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("heading", name="loss")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()

    page.get_by_role("tab", name="Differences").click()
    lr = page.get_by_role("row", name=re.compile("^lr"))
    expect(lr).to_contain_text("0.1")
    expect(lr).to_contain_text("0.4")
    expect(lr).to_contain_text("+300 %")
    expect(page.get_by_role("row", name=re.compile("^Compute"))).to_have_count(0)  # the same for both
    page.get_by_label("Show differences only").uncheck()
    expect(page.get_by_role("row", name=re.compile("^Compute"))).to_contain_text("local")

    page.get_by_role("tab", name="Code").click()
    changes = page.get_by_role("table", name="Changes of train.py")
    expect(changes).to_contain_text("3 / (1 + step * lr)")
    page.get_by_role("tab", name="Environment").click()
    expect(page.get_by_text("the same packages")).to_be_visible()


def test_lines_and_points_show_details(studio, three) -> None:
    home, runs = three
    ids = ",".join(run.id for run in runs)
    page = studio(home).open(f"/compare?runs={ids}&tab=parallel")
    expect(page.get_by_role("img", name=re.compile("Parallel coordinates of 3 runs over lr, loss"))).to_be_visible()
    page.locator("svg .lines path").first.dispatch_event("pointerenter")
    expect(page.locator("p.details")).to_contain_text(runs[0].id)

    page.get_by_role("tab", name="Scatter").click()
    point = page.get_by_role("link", name=re.compile(f"{runs[1].id}: lr 0.2, loss"))
    point.hover()
    expect(page.locator("p.details")).to_contain_text(runs[1].id)
    page.get_by_label("Color by").select_option("metrics.loss")
    expect(page).to_have_url(re.compile("by=metrics.loss"))


def test_hidden_and_removed_runs_are_part_of_the_url(studio, three) -> None:
    home, runs = three
    page = studio(home).open(f"/compare?runs={','.join(run.id for run in runs)}&tab=differences")
    heads = page.locator("thead a")
    expect(heads).to_have_count(3)
    page.get_by_role("button", name=runs[1].id, exact=True).click()
    expect(heads).to_have_count(2)
    page.reload()
    expect(heads).to_have_count(2)
    page.get_by_role("button", name=f"Remove {runs[1].id} from the comparison").click()
    expect(page.get_by_role("list", name="Compared runs").get_by_role("listitem")).to_have_count(2)


def test_a_diff_is_not_reloaded_when_its_runs_change(studio, three) -> None:
    home, runs = three
    tab = studio(home)
    requests: list[str] = []
    tab.page.on("request", lambda request: requests.append(request.url) if "/api/diff/" in request.url else None)
    page = tab.open(f"/compare?runs={runs[0].id},{runs[2].id}&tab=code")
    expect(page.get_by_role("table", name="Changes of train.py")).to_be_visible()
    runs[0].display_name = "the first"
    expect(page.get_by_label("From").get_by_role("option", name="the first")).to_have_count(1)
    assert len(requests) == 1
    runs[0].display_name = runs[0].id  # other tests use it


def test_an_empty_comparison_explains_how_to_start(studio, three) -> None:
    home, _ = three
    page = studio(home).open("/compare")
    expect(page.get_by_role("heading", name="Compare runs side by side")).to_be_visible()
    page.get_by_role("button", name="Compare the newest 3").click()
    expect(page.get_by_role("list", name="Compared runs").get_by_role("listitem")).to_have_count(3)


def test_nodes_and_queue_of_a_cluster_are_live(studio, own_home, project, tmp_path) -> None:
    go = tmp_path / "go"
    folder = project(train=f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)")
    workspace = Workspace()
    ComputeTarget.create(workspace, "cluster", AmlCompute.provisioning_configuration(max_nodes=2))
    page = studio(own_home).open("/computes")
    card = page.get_by_role("article", name="cluster")
    expect(card.get_by_text("0 of 2", exact=True)).to_be_visible()

    runs = []
    for _ in range(3):
        config = with_this_python(folder)
        config.run_config.target = "cluster"
        runs.append(Experiment(workspace, "digits").submit(config))
    expect(card.get_by_text("2 of 2", exact=True)).to_be_visible()
    expect(card.get_by_role("region", name="Queue of cluster")).to_contain_text(runs[2].id[-8:])
    go.touch()
    for run in runs:
        run.wait_for_completion()
    expect(card.get_by_text("0 of 2", exact=True)).to_be_visible()
    expect(card.get_by_role("region", name="Queue of cluster")).to_have_count(0)


def test_an_empty_environments_page_explains_how_to_create_one(studio, three) -> None:
    home, _ = three
    page = studio(home).open("/environments")
    expect(page.get_by_role("heading", name="No environments yet")).to_be_visible()
    expect(page.get_by_text("pip_packages")).to_be_visible()
