"""Fast path for `runyard run script.py …` without options: runs the script with this Python.

Importing takes half of a command's time, so the yard, which has everything imported, takes the snapshot of the folder.
Anything unusual falls back to the regular command, which reports errors.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from runyard.client.connection import Connection
from runyard.errors import RunyardException, YardUnavailable

_NOT_A_PROJECT = ("/", "/home", "/root", "/tmp")


def run_directly(script: str, arguments: list[str]) -> int | None:
    """The script's exit code; None if the regular command must be used and nothing was started."""
    if not Path(script).is_file() or not os.access(script, os.R_OK) or script.endswith(".ipynb"):
        return None
    folder, name = folder_and_script(script)
    if Path(script).resolve() != Path(folder).resolve() / name or "\0" in "".join(arguments):
        return None
    connection = Connection()
    if not connection.is_running():
        return None
    experiment = experiment_name(folder)
    request = {
        "run_id": f"{experiment}_{int(time.time())}_{os.urandom(4).hex()}",
        "experiment": experiment,
        "spec": {
            "script": name,
            "arguments": arguments,
            "environment": {"user_managed": True, "interpreter": sys.executable},
        },
        "source_directory": folder,
        "submitted_by": user_name(),
    }
    try:
        view = connection.post("/api/runs", request)
    except YardUnavailable:
        raise  # the run may have been started
    except RunyardException:
        return None  # rejected, so nothing was started; the regular command reports the error
    from runyard.cli.follow import follow_to_exit

    return follow_to_exit(connection, view)


def folder_and_script(script: str) -> tuple[str, str]:
    """The source directory and the script in it: the current folder if it contains the script, else the script's own.

    The home folder and similar are not projects: a snapshot would take minutes and contain private files.
    """
    here, path = Path.cwd(), Path(os.path.normpath(Path.cwd() / Path(script).expanduser()))
    if here not in path.parents or str(here) in _NOT_A_PROJECT or here == Path.home():
        here = path.parent
    return str(here), path.relative_to(here).as_posix()


def experiment_name(folder: str) -> str:
    """A valid experiment name from the folder's name."""
    name = Path(folder).resolve().name
    valid = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)
    return valid.strip("-_")[:100] or "default"


def user_name() -> str:
    name = os.environ.get("LOGNAME") or os.environ.get("USER")
    if name:
        return name
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container user without a name
        return f"uid {os.getuid()}"
