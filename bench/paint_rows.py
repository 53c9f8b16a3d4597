"""Loading time of the studio's table in a browser, with few and with many runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

from bench.listing_rows import multiply
from bench.row import Row, Sample, Size, not_measured
from bench.sandbox import Sandbox, script_config, wait_for
from runyard.client.connection import Connection

_FEW = 10
_HAS_ROWS = "document.querySelectorAll('[role=row] a').length > 5"


def first_paint(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    many = size.scaled(10_000, minimum=20)
    title = f"the studio's table of {many:,} runs, from navigation to its rows"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield not_measured(title, "it needs playwright (`make setup` installs it)")
        return
    chromium = shutil.which("chromium")
    if chromium is None:
        yield not_measured(title, "it needs Chromium (scripts/install-chromium)")
        return
    folder = sandbox.project("paint", train="from runyard import Run\nRun.get_context().log('m0', 1)")
    wait_for(sandbox.experiment("paint").submit(script_config(folder, "train.py", "--lr", 0.1)))
    samples: dict[int, tuple[Sample, Sample]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        for runs in (_FEW, many):
            multiply(sandbox, runs)
            samples[runs] = _measure_page(browser, min(size.rounds, 9))
        browser.close()
    yield Row(title, samples[many][0], (f"of {_FEW} runs", samples[_FEW][0]))
    yield Row("the same, to the first paint", samples[many][1], (f"of {_FEW} runs", samples[_FEW][1]))


def _measure_page(browser: Any, rounds: int) -> tuple[Sample, Sample]:
    """Return the seconds until the rows are visible and until the first paint, each measured in a new page."""
    address = Connection().post("/api/studio", {})
    # the page's content security policy forbids evaluating text, which Playwright needs
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{str(address['url']).rstrip('/')}/?token={address['ticket']}")
    rows, paints = Sample(), Sample()
    for _ in range(rounds):
        page.goto("about:blank")
        page.goto(f"{str(address['url']).rstrip('/')}/runs", wait_until="commit")
        page.wait_for_function(_HAS_ROWS, polling="raf")
        rows.append(page.evaluate("performance.now()") / 1000)
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
    context.close()
    return rows, paints
