"""The studio's table in a real browser: how long until it can be read, with few runs and with many."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

from bench.listing_rows import multiply
from bench.place import Place, as_it_is, to_the_end
from bench.row import Row, Sample, Size, not_measured
from runyard.client.connection import Connection

_FEW = 10
_ROWS_ARE_THERE = "document.querySelectorAll('[role=row] a').length > 5"


def first_paint(place: Place, size: Size) -> Iterator[Row]:
    many = size.of(10_000, least=20)
    what = f"the studio's table of {many:,} runs, from the address to its rows"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        yield not_measured(what, "it needs playwright (`make setup` installs it)")
        return
    chromium = shutil.which("chromium")
    if chromium is None:
        yield not_measured(what, "it needs Chromium (scripts/install-chromium)")
        return
    folder = place.project("paint", train="from runyard import Run\nRun.get_context().log('m0', 1)")
    to_the_end(place.experiment("paint").submit(as_it_is(folder, "train.py", "--lr", 0.1)))
    found: dict[int, tuple[Sample, Sample]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        for runs in (_FEW, many):
            multiply(place, runs)
            found[runs] = _opened(browser, min(size.rounds, 9))
        browser.close()
    yield Row(what, found[many][0], (f"of {_FEW} runs", found[_FEW][0]))
    yield Row("its first paint", found[many][1], (f"of {_FEW} runs", found[_FEW][1]))


def _opened(browser: Any, rounds: int) -> tuple[Sample, Sample]:
    """Until the rows are there, and until the browser has painted anything: seconds, each time in a new page."""
    address = Connection().post("/api/studio", {})
    # the page itself lets nobody evaluate text, which is how a browser is asked from outside
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{str(address['url']).rstrip('/')}/?token={address['ticket']}")
    rows, paints = Sample(), Sample()
    for _ in range(rounds):
        page.goto("about:blank")
        page.goto(f"{str(address['url']).rstrip('/')}/runs", wait_until="commit")
        page.wait_for_function(_ROWS_ARE_THERE, polling="raf")
        rows.append(page.evaluate("performance.now()") / 1000)
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
    context.close()
    return rows, paints
