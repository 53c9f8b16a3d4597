"""The studio in a real Chromium, against real yards. Whatever a page complains of fails its test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from runyard.client.connection import Connection
from support import a_home

PROJECT = Path(__file__).parents[2]
expect.set_options(timeout=20_000)  # machines that run tests are busy
PAGE = PROJECT / "src" / "runyard" / "server" / "studio" / "index.html"


# A fixture of the module, not of the session: while it is open, no other test of this process can have an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not PAGE.exists():
        _left_out("the studio is not built here: `make ui` needs Node")
    if not shutil.which("chromium"):
        done = subprocess.run([PROJECT / "scripts" / "install-chromium"], capture_output=True, text=True)
        if done.returncode != 0:
            _left_out((done.stderr.strip().splitlines() or ["scripts/install-chromium failed"])[-1])
    # a container's /dev/shm is small, and root is not let into Chromium's sandbox
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield chromium
        chromium.close()


def _left_out(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


class Studio:
    """One browser tab, signed in to the yard of a home."""

    def __init__(self, context: BrowserContext, home: Path) -> None:
        self.page: Page = context.new_page()
        self.expected: list[str] = []  # complaints that a test provokes
        self.complaints: list[str] = []
        address = Connection(home).post("/api/studio", {})
        self.url = str(address["url"]).rstrip("/")
        self.sign_in = f"{self.url}/?token={address['ticket']}"
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{error.message}\n{error.stack}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, path: str = "/runs") -> Page:
        self.page.goto(self.sign_in)
        self.page.goto(self.url + path)
        return self.page

    def unexpected(self) -> list[str]:
        return [said for said in self.complaints if not any(words in said for words in self.expected)]


@pytest.fixture
def studio(browser: Browser) -> Iterator[Callable[..., Studio]]:
    """`studio(home)` opens a tab; with `width` and `height` of another screen, or `color_scheme='dark'`."""
    opened: list[tuple[BrowserContext, Studio]] = []

    def make(home: Path, width: int = 1440, height: int = 900, **options: str) -> Studio:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        tab = Studio(context, home)
        opened.append((context, tab))
        return tab

    yield make
    for context, tab in opened:
        unexpected = tab.unexpected()
        context.close()
        assert unexpected == []


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home for one test, that has never had a run."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
