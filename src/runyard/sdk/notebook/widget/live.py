"""The widget itself: anywidget's, if it is installed, fed by a thread while the run lives."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from runyard.errors import RunyardException
from runyard.sdk.notebook.widget.feed import RunFeed

# A front end that loads the module later than the first news misses some: at first everything is sent each time.
_WHOLE_FOR_S = 3.0
_GATHER_S = 0.4


def live_widget(feed: RunFeed) -> Any:
    """None when anywidget is not installed."""
    made = _widget_class()
    if made is None:
        return None
    widget = made()
    pump = _Pump(feed, widget)
    widget.on_msg(lambda _, said, __: pump.answer(said))
    pump.start()
    return widget


def html_of(text: str) -> Any:
    import marimo

    return marimo.Html(text)


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None
    here = Path(__file__).parent

    class RunWidget(anywidget.AnyWidget):  # type: ignore[misc,unused-ignore]
        _esm = (here / "run_details.js").read_text(encoding="utf-8")
        _css = (here / "run_details.css").read_text(encoding="utf-8")
        news = traitlets.Dict().tag(sync=True)

    return RunWidget


class _Pump(threading.Thread):
    """Sends what is new, numbered; whoever has missed a number asks, and is sent everything.

    A thread, because a cell that waits for the run keeps the kernel from hearing the page. And an answer to the page
    besides, because some notebooks pass on nothing that a thread sends.
    """

    def __init__(self, feed: RunFeed, widget: Any) -> None:
        super().__init__(name="runyard-widget", daemon=True)
        self._feed, self._widget = feed, widget
        self._lock = threading.Lock()
        self._seq = 0
        self._begun = time.monotonic()
        self._say(feed.whole())

    def run(self) -> None:
        # a front end that takes nothing from threads says so in one of these ways; then the page asks by itself
        with suppress(LookupError, RuntimeError, AttributeError):
            while not self._feed.ended and self._widget.comm is not None:
                self._wait()
                with self._lock, suppress(OSError, RunyardException):
                    news = self._feed.news()
                    early = time.monotonic() - self._begun < _WHOLE_FOR_S
                    if news:
                        self._say(self._feed.whole() if early or self._feed.ended else news)

    def answer(self, said: Any) -> None:
        """The page has everything up to a number, and heard nothing since."""
        have = said.get("have") if isinstance(said, dict) else None
        with self._lock, suppress(OSError, RunyardException):  # the page asks again
            if self._feed.news() or have != self._seq:
                self._say(self._feed.whole())

    def _wait(self) -> None:
        """Until something has changed; a yard that went away is started again."""
        try:
            self._feed.wait()
        except (OSError, RunyardException):
            time.sleep(1.0)
        time.sleep(_GATHER_S)

    def _say(self, news: dict[str, Any]) -> None:
        self._seq += 1
        self._widget.news = {**news, "seq": self._seq}
