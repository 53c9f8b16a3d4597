"""Valid names of runs and experiments. Imports no other module of Runyard, because training scripts import it."""

from __future__ import annotations

import re

EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")  # the name of the run's folder

TERMINAL_STATES = frozenset(
    {"Completed", "Failed", "Canceled"}
)  # same as lifecycle.state.TERMINAL, which takes longer to import


def new_run_id(experiment: str) -> str:
    """An id for a new run of an experiment, with room for the suffixes of child runs."""
    import secrets
    import time

    return f"{experiment[:200]}_{int(time.time())}_{secrets.token_hex(4)}"


def to_experiment_name(title: str) -> str:
    """A valid experiment name for any title: the title itself if it is valid, otherwise a slug with a hash."""
    if EXPERIMENT_NAME.fullmatch(title):
        return title
    import hashlib

    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-_")[:100] or "experiment"
    return f"{slug}-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:6]}"
