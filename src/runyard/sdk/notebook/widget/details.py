"""The `RunDetails` class: a live view of a run in a notebook, or text in a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import display
from runyard.sdk.notebook.widget.feed import RunFeed, final_lines

if TYPE_CHECKING:
    from runyard.sdk.run.run import Run

_EXTRA = "for a live view: pip install 'runyard[notebook]'"


class RunDetails:
    """``RunDetails(run).show()`` displays status, charts and log of a run, updated while the next cells run.

    The live view needs the extra ``runyard[notebook]``. Otherwise the present state is printed once.

    Args:
        run_instance: The run.
    """

    def __init__(self, run_instance: Run) -> None:
        if not hasattr(run_instance, "id") or not hasattr(run_instance, "get_status"):
            raise UserErrorException(f"run_instance must be a run, got a {type(run_instance).__name__}")
        self._run = run_instance
        self._widget: Any = None

    def show(self, render_lib: Any = None, widget_settings: Any = None) -> None:
        """Display the run and return immediately."""
        no_effect.warn_ignored("RunDetails.show", "render_lib", render_lib, "the notebook renders the widget")
        no_effect.warn_ignored(
            "RunDetails.show", "widget_settings", widget_settings or None, "the widget has no settings"
        )
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
        """Return the content of the widget: details of the run, metrics and the last lines of the log."""
        summary = self._run._connection.get(f"/api/runs/{self._run.id}/summary")
        tail = RunFeed(self._run._connection, self._run.id).new_log()
        return {"status": self._run.get_status(), "run_properties": self._run.get_details(), **summary, "log": tail}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the live widget if possible, and static text for a notebook that is viewed without a kernel."""
        static = {"text/plain": self._text(), "text/html": self._run._repr_html_()}
        widget = self._live()
        if widget is None:
            static["text/html"] += f"<p>{_EXTRA}</p>"
            return static
        live = widget._repr_mimebundle_(**kwargs)
        data, metadata = live if isinstance(live, tuple) else (live, {})
        return {**(data or {}), **static}, metadata

    def _display_(self) -> Any:
        """Return the value that marimo displays."""
        import marimo

        return self._live() or marimo.Html(self._run._repr_html_())

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
        return display.run_text(view, summary["metrics"], final_lines(tail))


def _in_jupyter() -> bool:
    """True in every front end of a Jupyter kernel, but not in IPython in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
