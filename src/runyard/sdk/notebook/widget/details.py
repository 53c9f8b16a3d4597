"""RunDetails: a run in a notebook, live; in a terminal, as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import display
from runyard.sdk.notebook.widget.feed import RunFeed, settled

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

_EXTRA = "pip install 'runyard[notebook]' shows it live"


class RunDetails:
    """``RunDetails(run).show()``: status, charts and log of a run, which go on while the next cells run.

    It needs the extra ``runyard[notebook]``. Without it, or outside of a notebook, the same is said in words, once.
    """

    def __init__(self, run_instance: Run) -> None:
        if not hasattr(run_instance, "id") or not hasattr(run_instance, "get_status"):
            raise UserErrorException(f"RunDetails shows a run, not a {type(run_instance).__name__}")
        self._run = run_instance
        self._widget: Any = None

    def show(self, render_lib: Any = None, widget_settings: Any = None) -> None:
        """Returns at once, whatever the run does."""
        no_effect.told("RunDetails.show", "render_lib", render_lib, "the notebook says how it shows things")
        no_effect.told("RunDetails.show", "widget_settings", widget_settings or None, "the widget has no settings")
        marimo = sys.modules.get("marimo")
        if marimo is not None and marimo.running_in_notebook():
            marimo.output.append(self._display_())
        elif _in_jupyter():
            import IPython.display

            show: Any = IPython.display.display
            show(self)
        else:
            sys.stdout.write(self._text())
            sys.stdout.flush()

    def get_widget_data(self, widget_settings: Any = None) -> dict[str, Any]:
        """What the widget shows, as plain values: the details of the run, its metrics, the end of its log."""
        summary = self._run._connection.get(f"/api/runs/{self._run.id}/summary")
        tail = RunFeed(self._run._connection, self._run.id).new_log()
        return {"status": self._run.get_status(), "run_properties": self._run.get_details(), **summary, "log": tail}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live one where it can be, and what stays in a notebook that is read without a kernel."""
        static = {"text/plain": self._text(), "text/html": self._run._repr_html_()}
        widget = self._live()
        if widget is None:
            static["text/html"] += f"<p>{_EXTRA}</p>"
            return static
        live = widget._repr_mimebundle_(**kwargs)
        data, metadata = live if isinstance(live, tuple) else (live, {})
        return {**(data or {}), **static}, metadata

    def _display_(self) -> Any:
        """As marimo asks for it."""
        from runyard.sdk.notebook.widget.live import html_of

        return self._live() or html_of(self._run._repr_html_())

    def __repr__(self) -> str:
        return f"RunDetails({self._run.id})"

    def _live(self) -> Any:
        if self._widget is None:
            from runyard.sdk.notebook.widget.live import live_widget

            self._widget = live_widget(RunFeed(self._run._connection, self._run.id))
        return self._widget

    def _text(self) -> str:
        view = self._run._refresh()
        summary = self._run._connection.get(f"/api/runs/{self._run.id}/summary")
        tail = RunFeed(self._run._connection, self._run.id).new_log()
        return display.run_text(view, summary["metrics"], settled(tail))


def _in_jupyter() -> bool:
    """Any front end of a Jupyter kernel; IPython in a terminal is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
