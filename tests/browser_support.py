"""A real browser for tests: this machine's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from playwright.sync_api import ConsoleMessage, Dialog, Error, Page, sync_playwright

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
    path = shutil.which("chromium") or _installed()
    return _open(path) if path else "Chromium is not installed, and scripts/install-chromium could not install it"


def _installed() -> Union[str, None]:
    if not _INSTALL.exists() or subprocess.run([str(_INSTALL)], check=False, capture_output=True).returncode:
        return None
    return shutil.which("chromium")


@contextmanager
def _open(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            page = chromium.new_page(viewport={"width": 1280, "height": 1000})
            browser = Browser(page)
            page.on("console", lambda said: _note(browser, said))
            page.on("pageerror", lambda error: browser.errors.append(_told(error)))
            page.on("dialog", lambda dialog: _dismiss(browser, dialog))
            yield browser
        finally:
            chromium.close()


def _note(browser: Browser, said: ConsoleMessage) -> None:
    if said.type == "error":
        browser.errors.append(said.text)


def _told(error: Union[Error, Any]) -> str:
    return str(error)


def _dismiss(browser: Browser, dialog: Dialog) -> None:
    if dialog.type == "beforeunload":
        dialog.accept()
        return
    browser.dialogs.append(dialog.message)
    dialog.dismiss()
