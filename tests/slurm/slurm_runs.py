"""Facts about runs on Slurm."""

from __future__ import annotations

import json
from pathlib import Path

from runyard import Run


def job_of(run: Run, home: Path) -> str:
    return str(json.loads((home / "runs" / run.id / "slurm" / "job.json").read_text())["job_id"])


def activity(run: Run) -> str:
    return run.activity
