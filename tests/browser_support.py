"""A real browser for tests: this machine's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union

from playwright.sync_api import ConsoleMessage, Dialog, Page, sync_playwright

_INSTALL = Path(__file__).parents[1] / "scripts" / "install-chromium"


@dataclass
class Browser:
    page: Page
    errors: list[str] = field(default_factory=list)  # what its console and its scripts complained of
    dialogs: list[str] = field(default_factory=list)

    def screenshot(self, name: str) -> None:
        """Kept where RUNYARD_SCREENSHOTS says, for people to look at."""
        folder = os.environ.get("RUNYARD_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))


def browser_or_reason() -> Union[AbstractContextManager[Browser], str]:
    """A browser to enter, or why there is none."""
    if not shutil.which("chromium"):
        done = subprocess.run([str(_INSTALL)], check=False, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["scripts/install-chromium failed"])[-1]
    return _open(shutil.which("chromium") or "chromium")


@contextmanager
def _open(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # a container's /dev/shm is small, and root is not let into Chromium's sandbox
        flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        chromium = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            page = chromium.new_page(viewport={"width": 1280, "height": 1000})
            browser = Browser(page)
            page.on("console", lambda said: _note(browser, said))
            page.on("pageerror", lambda error: browser.errors.append(str(error)))
            page.on("dialog", lambda dialog: _dismiss(browser, dialog))
            yield browser
        finally:
            chromium.close()


def _note(browser: Browser, said: ConsoleMessage) -> None:
    if said.type == "error":
        browser.errors.append(said.text)


def _dismiss(browser: Browser, dialog: Dialog) -> None:
    if dialog.type == "beforeunload":
        dialog.accept()
        return
    browser.dialogs.append(dialog.message)
    dialog.dismiss()
