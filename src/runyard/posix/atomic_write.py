"""Files that are being written: under a name of their own until they are whole.

The name tells who writes it, so that tidying up after a killed yard does not take a draft from under a thread of this
one: whoever stopped a run at the moment of its end could not write down that it is to stop, and broke off.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

_END = ".draft"


def write_whole(path: Path, text: str) -> None:
    """All of it or nothing: a reader never meets half a file."""
    draft = draft_of(path)
    draft.write_text(text, encoding="utf-8", errors="surrogateescape")
    draft.chmod(0o600)  # variables may hold what only the owner should read
    draft.replace(path)


def draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{_END}")


def remove_left_behind(folder: Path) -> None:
    """Drafts of processes other than this one."""
    for draft in folder.glob(f"*{_END}"):
        if f".{os.getpid()}." not in draft.name:
            draft.unlink(missing_ok=True)
