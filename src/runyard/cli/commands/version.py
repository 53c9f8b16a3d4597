"""The `runyard version` command."""

from __future__ import annotations

import platform

from runyard import __version__
from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import Json, print_json

app = new_app()


@app.command(cls=Command)
def version(as_json: Json = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"runyard": __version__, "python": platform.python_version()})
    else:
        print(f"runyard {__version__} (Python {platform.python_version()})")
