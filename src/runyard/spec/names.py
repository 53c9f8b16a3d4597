"""Which names runs and experiments can have. On its own, and without anything else of ours: scripts import it too."""

from __future__ import annotations

import re

EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,400}")

ENDED = frozenset({"Completed", "Failed", "Canceled"})  # lifecycle.state has them too, and takes longer to import


def experiment_name(title: str) -> str:
    """A name for an experiment that is called otherwise elsewhere: itself where it can be, and always the same one."""
    if EXPERIMENT_NAME.fullmatch(title):
        return title
    import hashlib

    made = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-_")[:100] or "experiment"
    return f"{made}-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:6]}"
