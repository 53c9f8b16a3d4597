"""`runyard run script.py …` with no option of ours: the script as it is, with this Python.

Half of what a command takes is importing, so this path asks the yard, whose imports are warm, to do the work: it
freezes the folder and answers with the run. Whatever is unusual goes the long way, which knows all the errors.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from runyard.client.connection import Connection
from runyard.errors import RunyardException, YardUnavailable

_NOT_A_PROJECT = ("/", "/home", "/root", "/tmp")


def run_as_it_is(script: str, arguments: list[str]) -> int | None:
    """The script's exit code; None when the long way has to be gone, and nothing was started."""
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
        view = connection.post("/api/runs/from-folder", request)
    except YardUnavailable:
        raise  # it may have been started all the same
    except RunyardException:
        return None  # refused, so nothing was started; the long way says why in better words
    from runyard.cli.follow import follow_to_exit

    return follow_to_exit(connection, view)


def folder_and_script(script: str) -> tuple[str, str]:
    """The folder that travels, and the script in it: the current folder when the script lies below, else its own.

    The home folder and the like are no project: frozen whole, they would take minutes and hold what is private.
    """
    here, path = Path.cwd(), Path(os.path.normpath(Path.cwd() / Path(script).expanduser()))
    if here not in path.parents or str(here) in _NOT_A_PROJECT or here == Path.home():
        here = path.parent
    return str(here), path.relative_to(here).as_posix()


def experiment_name(folder: str) -> str:
    """The folder's name, made valid."""
    name = Path(folder).resolve().name
    valid = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)
    return valid.strip("-_")[:100] or "default"


def user_name() -> str:
    named = os.environ.get("LOGNAME") or os.environ.get("USER")
    if named:
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        return f"uid {os.getuid()}"
