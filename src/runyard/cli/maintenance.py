"""Starts maintenance of a home folder, which needs the engine but no running yard, as a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.errors import RunyardException
from runyard.launch.variables import ROLE


def run_maintenance(
    home: Path, arguments: list[str], on_progress: Callable[[dict[str, Any]], None] = lambda area: None
) -> Any:
    """The result of `python -m runyard.yard.maintenance`. Raises the error that it reports."""
    command = [sys.executable, "-m", "runyard.yard.maintenance", "--home", str(home), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, ROLE: "yard"}) as process:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if "progress" in message:
                on_progress(message["progress"])
            elif "error" in message:
                error = message["error"]
                raise getattr(errors, error["code"], RunyardException)(error["message"], hint=error["hint"])
            else:
                return message["result"]
    raise RunyardException(f"the check ended with code {process.returncode} and no result", hint="see the output above")
