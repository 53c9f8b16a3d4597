"""The runs table in a real browser: live updates, queries, sorting and selection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from runyard import Experiment, Run, Workspace
from studio_support import fill_home
from support import a_home, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

LIVE = """
import pathlib, time
from runyard import Run
run = Run.get_context()
run.log("loss", 0.5)
while not pathlib.Path({go!r}).exists():
    time.sleep(0.02)
run.log("loss", 0.25)
"""


@pytest.fixture(scope="module")
def many() -> Iterator[Path]:
    """A home with 10,000 runs."""
    with a_home() as home:
        fill_home(home, 10_000)
        yield home


def test_the_first_run_appears_on_an_empty_page(studio, own_home, project, tmp_path) -> None:
    page = studio(own_home).open("/")
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    expect(page.get_by_text("runyard run train.py")).to_be_visible()
    assert "token" not in page.url

    go = tmp_path / "go"
    folder = project(train=LIVE.format(go=str(go)))
    run = Experiment(Workspace(), "digits").submit(with_this_python(folder, arguments=["--lr", 0.1]))
    row = row_of(page, run)
    expect(row.get_by_text("Running")).to_be_visible()
    expect(row).to_contain_text("0.5")
    expect(row).to_contain_text("0.1")
    go.touch()
    expect(row.get_by_text("Completed")).to_be_visible()
    expect(row).to_contain_text("0.25")
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1  # without a reload


def test_ten_thousand_runs_are_searched_sorted_and_scrolled(studio, many) -> None:
    page = studio(many).open("/runs?cols=status,name,experiment,metrics.loss")
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    assert page.get_by_role("row").count() < 100  # visible rows only

    page.keyboard.press("/")
    page.keyboard.type("experiment:translate status:failed ")
    page.keyboard.press("Enter")
    expect(page.get_by_text("500 runs match")).to_be_visible()
    page.get_by_role("button", name="loss", exact=True).click()
    losses = column(page, "loss")
    assert losses == sorted(losses, reverse=True)
    page.get_by_role("button", name="loss", exact=True).click()
    expect(page.get_by_role("columnheader", name="loss", exact=True)).to_have_attribute("aria-sort", "ascending")
    losses = column(page, "loss")
    assert losses == sorted(losses)
    assert statuses(page) == {"Failed"}

    # the URL restores the view, and the back button works
    url = page.url
    page.goto(url)
    expect(page.get_by_text("500 runs match")).to_be_visible()
    assert column(page, "loss") == losses
    page.get_by_role("button", name="Clear query").click()
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("500 runs match")).to_be_visible()

    page.get_by_role("grid").evaluate("grid => grid.scrollTop = grid.scrollHeight")
    expect(page.locator("[role=row][aria-rowindex='501']")).to_contain_text("Failed")


def test_scrolling_far_down_loads_the_rows(studio, many) -> None:
    page = studio(many).open("/runs?sort=created_at")
    expect(page.locator("[role=row][aria-rowindex='2']")).to_contain_text("trial 0")
    page.get_by_role("grid").evaluate("grid => grid.scrollTop = 34 * 7000")
    expect(page.locator("[role=row][aria-rowindex='7002']")).to_contain_text("trial 7000")


def test_a_query_error_is_marked_and_the_last_result_stays(studio, many) -> None:
    tab = studio(many)
    tab.expected.append("status of 400")
    page = tab.open("/runs")
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("lr>abc")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("expected a number, got 'abc'")
    expect(alert.locator(".pointer")).to_have_attribute("style", re.compile(r"--at:\s*3ch"))
    expect(page.get_by_label("Query", exact=True)).to_have_attribute("aria-invalid", "true")
    assert page.get_by_role("row").count() > 10
    page.get_by_label("Query", exact=True).fill("lr>0.05")
    page.keyboard.press("Enter")
    expect(alert).to_have_count(0)
    expect(page.get_by_text("runs match")).to_be_visible()


def test_half_a_query_does_not_empty_the_table(studio, many) -> None:
    page = studio(many).open("/runs")
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("speechless")
    expect(page.get_by_text("No run matches yet")).to_be_visible()
    assert page.get_by_role("row").count() > 10
    for _ in "less":
        page.keyboard.press("Backspace")
    expect(page.get_by_text("2,500 runs match")).to_be_visible()
    page.keyboard.type("less")
    expect(page.get_by_text("No run matches yet")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_text("10,000 runs")).to_be_visible()


def test_escape_closes_the_query_syntax_and_nothing_else(studio, many) -> None:
    page = studio(many).open("/runs?sort=created_at")
    page.locator("#run-row-0").get_by_role("checkbox").click()
    expect(page.get_by_role("toolbar")).to_contain_text("1 run selected")
    button = page.get_by_role("button", name="Query syntax")
    button.click()
    syntax = page.get_by_role("region", name="Query syntax")
    expect(syntax).to_be_visible()
    page.keyboard.press("Escape")
    expect(syntax).to_have_count(0)
    expect(button).to_be_focused()
    expect(page.get_by_role("toolbar")).to_contain_text("1 run selected")


def test_queries_are_completed_with_existing_fields_and_values(studio, many) -> None:
    page = studio(many).open("/runs")
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("exper")
    page.get_by_role("option", name=re.compile("^experiment")).first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type(":spe")
    option = page.get_by_role("option", name=re.compile("^speech"))
    expect(page.get_by_role("option")).to_have_count(1)  # completions of "spe", not of the field
    expect(option).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_text("2,500 runs match")).to_be_visible()


def test_selected_columns_are_part_of_the_url(studio, many) -> None:
    page = studio(many).open("/runs")
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Search columns").fill("team")
    page.get_by_role("dialog", name="Columns").get_by_text("team").click()
    expect(page.get_by_role("columnheader", name="team")).to_be_visible()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_role("columnheader", name="team")).to_be_visible()
    expect(page.get_by_role("row").nth(1)).to_contain_text(re.compile("vision|language|audio"))


def test_keyboard_navigation(studio, many) -> None:
    page = studio(many).open("/runs?sort=created_at")
    expect(page.locator("#run-row-0")).to_be_visible()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts.get_by_text("Next run")).to_be_visible()
    page.keyboard.press("Escape")
    expect(shortcuts).to_have_count(0)
    for key in "jjkj":
        page.keyboard.press(key)
    expect(page.get_by_role("grid")).to_have_attribute("aria-activedescendant", "run-row-1")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("toolbar")).to_contain_text("2 runs selected")
    page.keyboard.press("Escape")
    expect(page.get_by_role("toolbar")).to_have_count(0)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/runs/speech_"))


def test_enter_and_space_activate_the_focused_control(studio, many) -> None:
    page = studio(many).open("/runs?sort=created_at")
    expect(page.locator("#run-row-0")).to_be_visible()
    page.keyboard.press("j")
    page.get_by_role("button", name="Columns").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Columns")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#run-row-1").get_by_role("checkbox").focus()
    page.keyboard.press("Space")
    expect(page.locator("#run-row-1").get_by_role("checkbox")).to_be_checked()
    expect(page.get_by_role("toolbar")).to_contain_text("1 run selected")
    page.get_by_role("checkbox", name="Clear selection").click()
    expect(page.locator("#run-row-1").get_by_role("checkbox")).not_to_be_checked()
    page.get_by_role("checkbox", name="Select all").click()
    expect(page.locator("#run-row-1").get_by_role("checkbox")).to_be_checked()
    page.get_by_role("checkbox", name="Clear selection").click()
    expect(page.get_by_role("toolbar")).to_have_count(0)
    page.keyboard.press("j")  # back to the table, which handles them
    page.keyboard.press("k")
    page.keyboard.press("Space")
    expect(page.get_by_role("toolbar")).to_contain_text("1 run selected")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/runs/digits_"))


def test_a_lost_sign_in_is_reported(studio, own_home) -> None:
    tab = studio(own_home)
    tab.expected += ["ERR_", "Failed to fetch", "status of 401"]
    page = tab.open("/runs")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.context.clear_cookies()
    page.reload()
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("runyard studio")
    expect(page.get_by_text("Not signed in", exact=True)).to_be_visible()


def test_selected_runs_are_canceled(studio, own_home, project, tmp_path) -> None:
    folder = project(train=LIVE.format(go=str(tmp_path / "never")))
    page = studio(own_home).open("/runs")
    run = Experiment(Workspace(), "digits").submit(with_this_python(folder))
    row = row_of(page, run)
    expect(row.get_by_text("Running")).to_be_visible()
    row.get_by_role("checkbox").click()
    page.get_by_role("button", name="Cancel 1 run").click()
    dialog = page.get_by_role("dialog", name="Cancel 1 run?")
    expect(dialog).to_contain_text(run.id)
    dialog.get_by_role("button", name="Cancel 1 run").click()
    expect(row.get_by_text("Canceled", exact=True)).to_be_visible()
    expect(dialog).to_have_count(0)


def test_user_texts_are_never_executed(studio, own_home) -> None:
    evil = "<img src=x onerror=\"alert('x')\"><script>alert(1)</script>"
    run = Experiment(Workspace(), "digits").start_logging(display_name=f"name {evil}")
    run.tag("team", evil)
    run.tag(f"key {evil}", "1")
    run.log(f"loss {evil}", 0.5)
    run.complete()
    tab = studio(own_home)
    page = tab.open("/runs?cols=status,name,tags,tags.team")
    row = row_of(page, run)
    expect(row).to_contain_text("<script>alert(1)</script>")
    for path in ("/runs", f"/compare?runs={run.id}&tab=differences", f"/compare?runs={run.id}", f"/runs/{run.id}"):
        page.goto(tab.url + path)
        expect(page.get_by_text(re.compile("script>alert")).first).to_be_visible()
    page.goto(f"{tab.url}/runs?q=%22%3Cscript%3Ealert(1)%3C/script%3E%22")
    expect(page.get_by_role("main")).to_contain_text("<script>alert(1)</script>")
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0


def test_a_lost_connection_is_reported_and_restored(studio, own_home) -> None:
    tab = studio(own_home)
    tab.expected += ["ERR_", "Failed to fetch"]
    page = tab.open("/runs")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.context.set_offline(True)
    page.get_by_label("Query", exact=True).fill("status:failed")
    expect(page.get_by_text("The yard is not responding.")).to_be_visible()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("The yard is not responding.")).to_have_count(0)


def test_loading_causes_no_layout_shift(studio, many) -> None:
    tab = studio(many)
    tab.page.add_init_script(
        "window.shifts = []; new PerformanceObserver(list => window.shifts.push(...list.getEntries()))"
        ".observe({type: 'layout-shift', buffered: true})"
    )
    page = tab.open("/runs")
    expect(page.locator("#run-row-0")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert page.evaluate("window.shifts.reduce((sum, shift) => sum + shift.value, 0)") < 0.01


@pytest.mark.parametrize("width", [390, 800])
def test_no_horizontal_overflow_on_narrow_screens(studio, many, width) -> None:
    tab = studio(many, width=width, height=780)
    page = tab.open("/runs")
    expect(page.get_by_text("10,000 runs")).to_be_visible()
    for path in ("/runs", "/compare", "/computes", "/environments"):
        page.goto(tab.url + path)
        page.get_by_role("heading").first.wait_for()
        overflow = "document.documentElement.scrollWidth - innerWidth"
        assert page.evaluate(overflow) <= 0, path
        main = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
        assert page.evaluate(main) <= 0, path


def row_of(page: Page, run: Run):
    return page.get_by_role("row").filter(has=page.locator(f"a[href='/runs/{run.id}']"))


def column(page: Page, name: str) -> list[float]:
    """The numbers of a column, after loading has finished."""
    expect(page.get_by_role("grid")).to_have_attribute("aria-busy", "false")
    headers = [text.strip() for text in page.get_by_role("columnheader").all_inner_texts()]
    index = headers.index(name)
    texts = page.evaluate(
        "index => [...document.querySelectorAll('[role=rowgroup] [role=row]')].map(r => r.children[index].innerText)",
        index,
    )
    return [float(text.replace(",", "")) for text in texts]


def statuses(page: Page) -> set[str]:
    return set(page.evaluate("[...document.querySelectorAll('[role=rowgroup] .status')].map(s => s.innerText.trim())"))
