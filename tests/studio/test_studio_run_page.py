"""The run page in a real browser: outcome, logs, files, code, details and actions."""

from __future__ import annotations

import io
import itertools
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from runyard import AmlCompute, ComputeTarget, Experiment, PyTorchConfiguration, Run, ScriptRunConfig, Workspace
from support import a_home, eventually, with_this_python

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("studio")]

_numbers = itertools.count(1)
BAD = "<img src=x onerror=alert(document.domain)>"

UNTIL = """
import pathlib, sys, time
for number in range(400):
    print("line", number, flush=True)
while not pathlib.Path({go!r}).exists():
    time.sleep(0.02)
for number in range(400, 500):
    print("\\x1b[32mline\\x1b[0m", number, flush=True)
while not pathlib.Path({stop!r}).exists():
    time.sleep(0.02)
"""

FAILS = """
import os, time
print("here", flush=True)
if os.environ["RANK"] == "1":
    raise ValueError("the loss is NaN")
time.sleep(60)
"""

FILES = """
import json, pathlib, struct, wave, zlib
out = pathlib.Path("outputs")
(out / "deep" / "er").mkdir(parents=True)
(out / "table.csv").write_text('step,words\\n1,"a, b"\\n2,<b>bold</b>\\n')
(out / "facts.json").write_text(json.dumps({{"accuracy": 0.97, "nested": {{"inner": [1, 2]}}}}))
(out / "deep" / "er" / "page.html").write_text("<script>alert('file')</script>")
(out / {bad!r}).write_text("harmless")
(out / "model.bin").write_bytes(bytes(range(256)) * 10)
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
row = b"\\0" + b"\\x80\\x20\\x20" * 20
head = chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 20, 8, 2, 0, 0, 0))
body = chunk(b"IDAT", zlib.compress(row * 20)) + chunk(b"IEND", b"")
(out / "image.png").write_bytes(b"\\x89PNG\\r\\n\\x1a\\n" + head + body)
with wave.open(str(out / "tone.wav"), "wb") as sound:
    sound.setnchannels(1); sound.setsampwidth(2); sound.setframerate(8000); sound.writeframes(bytes(1600))
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home shared by the tests of this module."""
    with a_home() as folder:
        yield folder


@pytest.fixture
def submit(home: Path, tmp_path: Path) -> Callable[..., Run]:
    """`submit(script)` starts a run; with `wait=True` it returns after the run has ended."""

    def submit_script(script: str, *arguments: object, wait: bool = True, tags: dict[str, str] | None = None) -> Run:
        folder = tmp_path / f"project-{next(_numbers)}"
        folder.mkdir()
        (folder / "train.py").write_text(script)
        config = with_this_python(folder, arguments=list(arguments))
        run = Experiment(Workspace(home=home), "pages").submit(config, tags=tags)
        if wait:
            run.wait_for_completion(raise_on_error=False)
        return run

    return submit_script


def log(page: Page) -> object:
    return expect(page.get_by_role("log"))


def test_a_failed_run_shows_its_error_and_process(studio, home, tmp_path) -> None:
    (tmp_path / "train.py").write_text(FAILS)
    workspace = Workspace(home=home)
    cluster = ComputeTarget.create(workspace, "pair", AmlCompute.provisioning_configuration(max_nodes=2))
    job = PyTorchConfiguration(process_count=2, node_count=2)
    config = ScriptRunConfig(tmp_path, script="train.py", compute_target=cluster, distributed_job_config=job)
    config.run_config.environment.python.user_managed_dependencies = True
    run = Experiment(workspace, "pages").submit(config)
    run.wait_for_completion(raise_on_error=False)

    page = studio(home).open(f"/runs/{run.id}")
    outcome = page.get_by_role("region", name="Outcome")
    expect(outcome.get_by_role("heading", name="Script failed")).to_be_in_viewport()
    expect(outcome.get_by_text("rank", exact=True).locator("xpath=..")).to_have_text(re.compile(r"rank\s*1"))
    expect(outcome.get_by_text("node-1", exact=True)).to_be_in_viewport()
    expect(outcome.get_by_text("ValueError: the loss is NaN").first).to_be_in_viewport()
    expect(outcome.get_by_label("Traceback")).to_contain_text("Traceback (most recent call last)")
    expect(page.get_by_role("region", name="Time per phase")).to_contain_text("Run")
    # the log of the failed process is opened
    outcome.get_by_role("link", name="Open log").click()
    expect(page.get_by_role("link", name="Rank 1 · node-1")).to_have_attribute("aria-current", "true")
    log(page).to_contain_text("raise ValueError")
    page.get_by_role("link", name="Rank 0 · node-0").click()
    expect(page.get_by_role("link", name="Rank 0 · node-0")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("log").get_by_text("raise ValueError")).to_have_count(0)  # it may be empty


def test_a_live_log_is_followed_until_the_user_scrolls_up(studio, home, submit, tmp_path) -> None:
    go, stop = tmp_path / "go", tmp_path / "stop"
    run = submit(UNTIL.format(go=str(go), stop=str(stop)), wait=False)
    page = studio(home).open(f"/runs/{run.id}?tab=logs")
    log(page).to_contain_text("line 399")
    go.touch()
    log(page).to_contain_text("line 499")
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1

    page.get_by_role("log").hover()
    page.mouse.wheel(0, -3000)
    log(page).not_to_contain_text("line 499")
    expect(page.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    page.get_by_role("button", name="Follow", exact=True).click()
    log(page).to_contain_text("line 499")

    # system metrics are recorded as well
    page.get_by_role("link", name="System").click()
    expect(page.get_by_role("slider", name="CPU: use the arrow keys")).to_be_visible(timeout=20_000)
    stop.touch()
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()


def test_a_large_log_is_searched_and_scrolled(studio, home, submit) -> None:
    run = submit(
        "import sys\n"
        "sys.stdout.write(''.join(f'line {i} ' + 'x' * 70 + '\\n' for i in range(150_000)))\n"
        "sys.stdout.write('\\x1b[31mthe needle\\x1b[0m <script>alert(1)</script>\\n')\n"
        "sys.stdout.write(''.join(f'line {i} ' + 'x' * 70 + '\\n' for i in range(150_001, 300_000)))\n"
    )
    tab = studio(home)
    fetched: list[int] = []
    tab.page.on(
        "response", lambda r: fetched.append(int(r.headers.get("content-length", 0))) if "/logs/" in r.url else 0
    )
    page = tab.open(f"/runs/{run.id}?tab=logs")
    log(page).to_contain_text("line 299999")
    page.keyboard.press("/")
    page.keyboard.type("needle")
    page.keyboard.press("Enter")
    log(page).to_contain_text("the needle <script>alert(1)</script>")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    expect(page.locator("mark")).to_have_text("needle")
    expect(page.locator(".line.current .number")).to_have_text("150001")
    log(page).to_contain_text("line 150001")
    page.get_by_role("log").focus()
    page.keyboard.press("Home")
    log(page).to_contain_text("line 0 ")
    page.keyboard.press("End")
    log(page).to_contain_text("line 299999")
    page.get_by_role("log").hover()
    page.mouse.wheel(0, -400)
    log(page).not_to_contain_text("line 299999")
    end = page.get_by_role("button", name="Go to end", exact=True)
    expect(end).to_have_attribute("aria-pressed", "false")
    page.mouse.wheel(0, 900)
    log(page).to_contain_text("line 299999")
    expect(end).to_have_attribute("aria-pressed", "true")
    assert sum(fetched) < 3_000_000  # of 24 million


def test_canceling_requires_confirmation(studio, home, submit) -> None:
    run = submit("import time\nprint('here', flush=True)\ntime.sleep(600)", wait=False)
    page = studio(home).open(f"/runs/{run.id}")
    expect(page.get_by_text("Running", exact=True)).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Keep running").click()
    expect(page.get_by_text("Running", exact=True)).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect(page.get_by_role("heading", name="Canceled", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_hidden()
    assert run.get_status() == "Canceled"


def test_a_run_is_resubmitted(studio, home, submit) -> None:
    run = submit("print('again and again')", "--lr", 0.1)
    page = studio(home).open(f"/runs/{run.id}")
    page.get_by_role("button", name="Re-run").click()
    page.wait_for_url(lambda url: "/runs/pages_" in url and run.id not in url)
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    page.get_by_role("link", name="Details").click()
    expect(page.get_by_role("row", name="lr 0.1")).to_be_visible()


def test_files_are_previewed_by_type(studio, home, submit) -> None:
    run = submit(FILES.format(bad=BAD.replace("/", "")))
    page = studio(home).open(f"/runs/{run.id}?tab=files")

    def select(name: str) -> None:
        page.get_by_role("navigation", name="Files").get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()

    select("table.csv")
    expect(page.get_by_role("cell", name="a, b")).to_be_visible()
    expect(page.get_by_role("cell", name="<b>bold</b>")).to_be_visible()
    select("facts.json")
    expect(page.get_by_text("accuracy")).to_be_visible()
    select("image.png")
    image = page.get_by_role("img", name="outputs/image.png")
    expect(image).to_be_visible()
    eventually(lambda: image.evaluate("image => image.naturalWidth") == 20, "the image is drawn")
    select("tone.wav")
    expect(page.get_by_label("outputs/tone.wav")).to_be_visible()
    select("model.bin")
    expect(page.get_by_text("Binary file")).to_be_visible()
    page.get_by_text("deep/er").click()
    select("page.html")
    expect(page.get_by_role("region", name="outputs/deep/er/page.html")).to_have_text(re.compile("<script>alert"))
    select(BAD)
    expect(page.get_by_role("heading", name=f"outputs/{BAD}")).to_be_visible()

    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert download.value.path().read_text() == "harmless"
    with page.expect_download() as archive:
        page.get_by_role("link", name="Download all (zip)").click()
    names = zipfile.ZipFile(io.BytesIO(archive.value.path().read_bytes())).namelist()
    assert any(name.endswith("outputs/table.csv") for name in names)


def test_code_and_environment_are_shown_and_compared(studio, home, submit) -> None:
    first = submit("rate = 0.1\nprint(rate)\n")
    second = submit("rate = 0.2\nprint(rate)\n")
    page = studio(home).open(f"/runs/{second.id}?tab=code")
    expect(page.get_by_role("region", name="train.py")).to_contain_text("rate = 0.2")
    page.get_by_label("Compare with").select_option(first.id)
    changes = page.get_by_role("table", name="Changes of train.py")
    expect(changes.get_by_role("row").filter(has_text="0.1")).to_have_class(re.compile("removed"))
    expect(changes.get_by_role("row").filter(has_text="0.2")).to_have_class(re.compile("added"))
    page.get_by_role("link", name="Environment", exact=True).click()
    expect(page.get_by_text("Both runs used the same packages.")).to_be_visible()


def test_user_texts_are_never_rendered_as_markup(studio, home, submit) -> None:
    run = submit(
        f"from runyard import Run\nrun = Run.get_context()\nrun.log({BAD!r}, 1)\nrun.log_list({BAD + 's'!r}, [1, 2])\n"
        f"print({BAD!r})\nraise ValueError({BAD!r})",
        "--name",
        BAD,
        tags={BAD: BAD},
    )
    tab = studio(home)
    page = tab.open(f"/runs/{run.id}")
    expect(page.get_by_label("Traceback")).to_contain_text(BAD)
    expect(page.get_by_role("heading", name=BAD + "s")).to_be_visible()
    page.get_by_role("link", name="Logs").click()
    log(page).to_contain_text(BAD)
    page.get_by_role("link", name="Details").click()
    expect(page.get_by_role("row", name=f"name {BAD}")).to_be_visible()
    expect(page.get_by_label(f"Value of tag {BAD}")).to_have_value(BAD)
    assert page.locator("img[src=x]").count() == 0  # a dialog would fail this test at its end


def test_tags_are_added_and_removed(studio, home, submit) -> None:
    run = submit("print(1)", tags={"team": "vision"})
    page = studio(home).open(f"/runs/{run.id}?tab=details")
    page.get_by_label("New tag", exact=True).fill("stage")
    page.get_by_label("Value of the new tag").fill("final")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_label("Value of tag stage")).to_have_value("final")
    page.get_by_role("button", name="Remove tag team").click()
    expect(page.get_by_label("Value of tag team")).to_be_hidden()
    assert run.get_tags() == {"stage": "final"}


def test_the_command_is_shown_without_secrets(studio, home, submit, monkeypatch) -> None:
    run = submit("print(1)", "--words", "two words")
    page = studio(home).open(f"/runs/{run.id}?tab=details")
    expect(page.get_by_text("train.py --words 'two words'")).to_be_visible()
    page.get_by_label("Filter variables").fill("RUN_TOKEN")
    expect(page.get_by_role("row", name="AZUREML_RUN_TOKEN ***")).to_be_visible()


def test_narrow_dark_screen_and_keyboard(studio, home, submit) -> None:
    run = submit("from runyard import Run\nRun.get_context().log_list('loss', [3, 2, 1])\nprint('hello')")
    page = studio(home, width=390, height=844, color_scheme="dark").open(f"/runs/{run.id}")
    expect(page.get_by_role("slider", name="loss: use the arrow keys")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    page.keyboard.press("2")
    log(page).to_contain_text("hello")
    page.keyboard.press("6")
    expect(page.get_by_role("heading", name="Parameters")).to_be_visible()
    page.go_back()
    log(page).to_contain_text("hello")


def test_an_unknown_run_is_reported(studio, home) -> None:
    tab = studio(home)
    tab.expected = ["404"]
    page = tab.open("/runs/pages_none")
    expect(page.get_by_role("alert")).to_contain_text("pages_none")
