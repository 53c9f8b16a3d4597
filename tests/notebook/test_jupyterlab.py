"""A run in a real JupyterLab in a real browser: live while the kernel is busy, with all user text escaped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from browser_support import Browser, browser_or_reason
from support import eventually

EVIL = "<img src=x onerror=alert(1)>"
# logs the number of points in a file, and ends as the file requests
SCRIPT = f"""
import sys, time
from pathlib import Path
from runyard import Run
run, control, logged = Run.get_context(), Path(sys.argv[1]), 0
run.log({EVIL!r}, 1.0)
print({EVIL!r}, flush=True)
while True:
    count, _, end = control.read_text().partition(" ")
    while logged < int(count):
        run.log("loss", 1.0 / (logged + 1), step=logged)
        logged += 1
        print("logged", logged, flush=True)
    if end == "fail":
        raise ValueError({EVIL!r})
    if end:
        break
    time.sleep(0.02)
"""
CELLS = (
    """
from runyard import Experiment, RunDetails, ScriptRunConfig
config = ScriptRunConfig("project", script="train.py", arguments=["CONTROL"])
config.run_config.environment.python.user_managed_dependencies = True
run = Experiment("notebook").submit(config)
RunDetails(run).show()
""",
    "print(run.wait_for_completion(raise_on_error=False)['status'])",
    "run",
)

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("browser")]


# as in Colab, which drops messages from other threads of the kernel
NO_MESSAGES = "from runyard.sdk.notebook.widget import live; live._Updater.run = lambda self: None"


class Notebook:
    def __init__(self, folder: Path) -> None:
        self.path, self._control = folder / "train.ipynb", folder / "control"
        (folder / "project").mkdir()
        (folder / "project" / "train.py").write_text(SCRIPT)
        self.set_control("0")
        cells = [nbformat.v4.new_code_cell(cell.replace("CONTROL", str(self._control)).strip()) for cell in CELLS]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        self.book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        self.save()

    def save(self) -> None:
        nbformat.write(self.book, self.path)

    def set_control(self, text: str) -> None:
        fresh = self._control.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self._control)


@pytest.fixture
def notebook(jupyter_folders: Path, home: Path) -> Notebook:
    folder = jupyter_folders / "work"
    folder.mkdir()
    return Notebook(folder)


@pytest.fixture
def lab(notebook: Notebook) -> Iterator[str]:
    """The URL of the notebook in a separate JupyterLab."""
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.root_dir={notebook.path.parent}", "--IdentityProvider.token=open-sesame"]
    command += ["--ServerApp.port_retries=100", "--LabApp.news_url=None", "--LabApp.collaborative=False"]
    log_path = notebook.path.parent.parent / "jupyterlab.log"
    with (
        open(log_path, "wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            addresses: list[str] = []

            def address() -> bool:
                addresses.extend(re.findall(r"http://127\.0\.0\.1:\d+/lab", log_path.read_text(errors="replace"))[:1])
                assert process.poll() is None, log_path.read_text()
                return bool(addresses)

            eventually(address, "JupyterLab answers", within_s=60)
            yield f"{addresses[0]}/tree/{notebook.path.name}?token=open-sesame"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:  # Jupyter may wait for a thread that never ends
                process.kill()


@pytest.fixture
def browser() -> Iterator[Browser]:
    browser_or_skip = browser_or_reason()
    if isinstance(browser_or_skip, str):
        pytest.skip(browser_or_skip)
    with browser_or_skip as browser:
        yield browser
        browser.screenshot("jupyterlab-last")


def test_a_run_is_live_in_jupyterlab_while_the_kernel_waits_for_it(
    notebook: Notebook, lab: str, browser: Browser
) -> None:
    page = browser.page
    notebook.set_control("3")
    run_all(browser, lab)
    run = page.locator("section.runyard-run")
    run.locator(".status[data-status=Running]").wait_for(timeout=30_000)
    chart = run.get_by_role("img", name=re.compile(r"^loss: 3 points, last 0\.33333"))
    chart.wait_for(timeout=20_000)
    notebook.set_control("40")
    run.get_by_role("img", name=re.compile(r"^loss: 40 points, last 0\.025")).wait_for(timeout=20_000)
    run.get_by_role("log").get_by_text("logged 40").wait_for(timeout=20_000)
    browser.screenshot("jupyterlab-running")
    assert run.locator("figcaption").get_by_text(EVIL, exact=True).count() == 1
    assert EVIL in run.get_by_role("log").inner_text()
    notebook.set_control("50 fail")
    alert = run.get_by_role("alert")
    alert.get_by_text(f"ValueError: {EVIL}").first.wait_for(timeout=30_000)
    run.locator(".status[data-status=Failed]").wait_for()
    run.get_by_role("img", name=re.compile(r"^loss: 50 points")).wait_for(timeout=20_000)
    assert alert.bounding_box()["y"] < run.locator(".charts").bounding_box()["y"]  # the error comes first
    page.get_by_text("Failed", exact=True).nth(1).wait_for(timeout=30_000)  # the cell that waited has ended
    browser.screenshot("jupyterlab-failed")
    assert page.locator("img[src=x]").count() == 0
    assert browser.dialogs == []
    assert [error for error in browser.errors if "runyard" in error.lower()] == []

    page.keyboard.press("Control+s")
    page.wait_for_function("!document.querySelector('.jp-mod-dirty')")
    page.reload()  # a new page requests the updates that it missed
    run = page.locator("section.runyard-run")
    run.get_by_role("img", name=re.compile(r"^loss: 50 points")).wait_for(timeout=60_000)


def test_a_page_without_messages_polls(notebook: Notebook, lab: str, browser: Browser) -> None:
    notebook.book.cells[1:] = []
    notebook.book.cells.insert(0, nbformat.v4.new_code_cell(NO_MESSAGES))
    notebook.save()
    run_all(browser, lab)
    run = browser.page.locator("section.runyard-run")
    run.wait_for(timeout=30_000)
    notebook.set_control("4")
    run.get_by_role("img", name=re.compile(r"^loss: 4 points")).wait_for(timeout=20_000)
    notebook.set_control("5 end")
    run.locator(".status[data-status=Completed]").wait_for(timeout=20_000)
    chart = run.get_by_role("img", name=re.compile(r"^loss: 5 points"))
    chart.wait_for(timeout=20_000)
    assert chart.count() == 1


def run_all(browser: Browser, lab: str) -> None:
    page = browser.page
    page.goto(lab)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_a_notebook_executed_without_a_page_stores_text(notebook: Notebook) -> None:
    notebook.set_control("5 end")
    NotebookClient(notebook.book, timeout=120, resources={"metadata": {"path": str(notebook.path.parent)}}).execute()
    widget, waited, run = (cell.outputs for cell in notebook.book.cells)
    bundle = widget[0]["data"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "notebook" in bundle["text/plain"]
    assert "<table" in bundle["text/html"]
    assert waited[0]["text"] == "Completed\n"
    assert "Completed" in run[0]["data"]["text/html"]
    assert "<img" not in json.dumps(bundle) + json.dumps(run)


def test_without_anywidget_a_notebook_shows_text(notebook: Notebook) -> None:
    notebook.set_control("5 end")
    notebook.book.cells.insert(0, nbformat.v4.new_code_cell("import sys; sys.modules['anywidget'] = None"))
    NotebookClient(notebook.book, timeout=120, resources={"metadata": {"path": str(notebook.path.parent)}}).execute()
    bundle = notebook.book.cells[1].outputs[0]["data"]
    assert sorted(bundle) == ["text/html", "text/plain"]
    assert "runyard[notebook]" in bundle["text/html"]
