"""The studio in a real Chromium with real yards. Unexpected console messages of a page fail its test."""

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
expect.set_options(timeout=20_000)  # test machines may be busy
PAGE = PROJECT / "src" / "runyard" / "server" / "studio" / "index.html"


# Scope "module", not "session": while Playwright is active, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not PAGE.exists():
        _skip("the studio is not built: `make ui` requires Node")
    if not shutil.which("chromium"):
        result = subprocess.run([PROJECT / "scripts" / "install-chromium"], capture_output=True, text=True)
        if result.returncode != 0:
            _skip((result.stderr.strip().splitlines() or ["scripts/install-chromium failed"])[-1])
    # /dev/shm is small in containers, and Chromium's sandbox does not support root
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        yield chromium
        chromium.close()


def _skip(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


class Studio:
    """A browser tab, signed in to the yard of a home."""

    def __init__(self, context: BrowserContext, home: Path) -> None:
        self.page: Page = context.new_page()
        self.expected: list[str] = []  # parts of messages that a test provokes
        self.messages: list[str] = []
        address = Connection(home).post("/api/studio", {})
        self.url = str(address["url"]).rstrip("/")
        self.sign_in = f"{self.url}/?token={address['ticket']}"
        self.page.on("console", lambda m: self.messages.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.messages.append(f"{error.message}\n{error.stack}"))
        self.page.on("dialog", lambda dialog: (self.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, path: str = "/runs") -> Page:
        self.page.goto(self.sign_in)
        self.page.goto(self.url + path)
        return self.page

    def unexpected(self) -> list[str]:
        return [text for text in self.messages if not any(expected in text for expected in self.expected)]


@pytest.fixture
def studio(browser: Browser) -> Iterator[Callable[..., Studio]]:
    """`studio(home)` opens a tab; `width`, `height` and `color_scheme` describe the screen."""
    tabs: list[tuple[BrowserContext, Studio]] = []

    def make(home: Path, width: int = 1440, height: int = 900, **options: str) -> Studio:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        tab = Studio(context, home)
        tabs.append((context, tab))
        return tab

    yield make
    for context, tab in tabs:
        unexpected = tab.unexpected()
        context.close()
        assert unexpected == []


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without runs, for one test."""
    with a_home() as folder:
        monkeypatch.setenv("RUNYARD_HOME", str(folder))
        yield folder
