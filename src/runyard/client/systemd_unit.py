"""A systemd unit that starts the yard, and with it the services, when the machine or the user's session starts."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Optional

SYSTEM_FOLDER = Path("/etc/systemd/system")


def user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"


def unit_name(home: Path) -> str:
    """One unit per home folder; `runyard.service` for the default one."""
    if home == Path.home() / ".runyard":
        return "runyard.service"
    return f"runyard-{re.sub('[^A-Za-z0-9]+', '-', str(home)).strip('-')}.service"


def unit_text(home: Path, *, user: Optional[str] = None, listen: Optional[tuple[str, int]] = None) -> str:
    """The text of the unit.

    Args:
        home: The yard's home folder.
        user: The account to run as, for a unit of the system; None for a unit of the user's own systemd.
        listen: Address and port of the studio and the API, as for `runyard server`; None for the unix socket only.
    """
    python = _quoted(sys.executable)
    arguments = f"--home {_quoted(str(home))} --idle-s inf"
    if listen is not None:
        address = {"host": listen[0], "port": listen[1], "names": []}
        arguments += f" --listen {_quoted(json.dumps(address))}"
    account = f"User={user}\n" if user is not None else ""
    target = "multi-user.target" if user is not None else "default.target"
    return f"""[Unit]
Description=Runyard: the yard of {_escaped(str(home))}
After=network.target

[Service]
Type=notify
{account}# a yard that a command has started in the background ends first; its runs and services continue
ExecStartPre=-{python} -m runyard --home {_quoted(str(home))} yard stop
ExecStart={python} -m runyard.yard {arguments}
Restart=on-failure
RestartSec=1
# only the yard: runs and services have processes of their own, and continue without it
KillMode=process
TimeoutStartSec=300
UMask=0077

[Install]
WantedBy={target}
"""


def _quoted(text: str) -> str:
    escaped = _escaped(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
