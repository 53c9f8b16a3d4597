"""The live widget, based on anywidget and updated by a thread until the run has ended."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from runyard.errors import RunyardException
from runyard.sdk.notebook.widget.feed import RunFeed

# A front end may load the module after the first updates and miss them: during this time every update is a full one.
_FULL_UPDATES_FOR_S = 3.0
_BATCH_S = 0.4


def live_widget(feed: RunFeed) -> Any:
    """Return a widget that updates itself, or None if anywidget is not installed."""
    widget_class = _widget_class()
    if widget_class is None:
        return None
    widget = widget_class()
    updater = _Updater(feed, widget)
    widget.on_msg(lambda _, message, __: updater.handle_message(message))
    updater.start()
    return widget


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None
    folder = Path(__file__).parent

    class RunWidget(anywidget.AnyWidget):  # type: ignore[misc,unused-ignore]
        _esm = (folder / "run_details.js").read_text(encoding="utf-8")
        _css = (folder / "run_details.css").read_text(encoding="utf-8")
        message = traitlets.Dict().tag(sync=True)

    return RunWidget


class _Updater(threading.Thread):
    """Sends numbered updates; a page that missed one sends a message and receives a full update.

    A thread is needed because a cell that waits for the run blocks the kernel's messages. Replies to messages are
    needed because some notebooks do not forward what a thread sends.
    """

    def __init__(self, feed: RunFeed, widget: Any) -> None:
        super().__init__(name="runyard-widget", daemon=True)
        self._feed, self._widget = feed, widget
        self._lock = threading.Lock()
        self._seq = 0
        self._started_at = time.monotonic()
        self._send(feed.full_update())

    def run(self) -> None:
        # front ends that do not support sending from threads raise one of these; then the page polls
        with suppress(LookupError, RuntimeError, AttributeError):
            while not self._feed.ended and self._widget.comm is not None:
                self._wait()
                with self._lock, suppress(OSError, RunyardException):
                    update = self._feed.update()
                    is_early = time.monotonic() - self._started_at < _FULL_UPDATES_FOR_S
                    if update:
                        self._send(self._feed.full_update() if is_early or self._feed.ended else update)

    def handle_message(self, message: Any) -> None:
        """Reply to a page that reports the number of the last update it received."""
        received = message.get("received") if isinstance(message, dict) else None
        with self._lock, suppress(OSError, RunyardException):  # the page will send the message again
            if self._feed.update() or received != self._seq:
                self._send(self._feed.full_update())

    def _wait(self) -> None:
        """Wait until something has changed; a yard that has ended is restarted."""
        try:
            self._feed.wait()
        except (OSError, RunyardException):
            time.sleep(1.0)
        time.sleep(_BATCH_S)

    def _send(self, update: dict[str, Any]) -> None:
        self._seq += 1
        self._widget.message = {**update, "seq": self._seq}
