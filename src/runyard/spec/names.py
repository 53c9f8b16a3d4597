"""Which names runs and experiments can have. On its own, since every training script imports it."""

from __future__ import annotations

import re

EXPERIMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,400}")
