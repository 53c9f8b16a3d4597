"""The files of a run's folder about its Slurm job: the submitted script, the job's name and id, and its output."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.agent.event_log import read_events
from runyard.launch.order import WorkOrder, read_attempt, read_order, write_order
from runyard.posix.atomic_write import write_text
from runyard.posix.regular_file import read_regular
from runyard.spec.folder import RunFolder
from runyard.spec.strict_json import parse_json

_TAIL_BYTES = 4096
_MAX_BYTES = 1 << 16
_JOB_ID = re.compile(r"[0-9A-Za-z_.\[\]%,-]{1,200}")


@dataclass(frozen=True)
class JobRecord:
    folder: RunFolder

    @property
    def script(self) -> Path:
        return self.folder.root / "slurm" / "job.sh"

    @property
    def name(self) -> str:
        """The name of the job that was submitted last, or was about to be."""
        return str(_read(self._file).get("name", ""))

    @property
    def job_id(self) -> str | None:
        """None if no job was submitted, or the yard was killed before it received the id."""
        job_id = _read(self._file).get("job_id")
        return job_id if isinstance(job_id, str) and _JOB_ID.fullmatch(job_id) else None

    @property
    def grace_s(self) -> float:
        with suppress(OSError, ValueError):
            return read_order(self.folder.order).grace_s
        return 10.0

    @property
    def nodes(self) -> int:
        with suppress(OSError, ValueError):
            return read_order(self.folder.order).resources.nodes
        return 1

    @property
    def agent_pid(self) -> int | None:
        """The pid on the agent's own node."""
        with suppress(OSError, ValueError):
            return int(read_regular(self.folder.agent_lock, 32))
        return None

    @property
    def has_ended(self) -> bool:
        """True once the agent has recorded how this attempt ended. Slurm may keep the job for a while after that."""
        attempt = read_attempt(self.folder.order) or 1
        events, _ = read_events(self.folder.events)
        ends = [event["attempt"] for event in events if event["event"] in ("script_ended", "launch_failed")]
        return bool(ends) and ends[-1] == attempt

    @property
    def output(self) -> str:
        """The end of the batch script's output, which is empty unless an agent could not start."""
        outputs = sorted(self.script.parent.glob("output-*.txt"))
        with suppress(OSError, IndexError):
            return outputs[-1].read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
        return ""

    def write_before_submission(self, order: WorkOrder, script: str, name: str) -> None:
        """If the yard is killed while sbatch runs, the next yard finds the job by this name."""
        self.script.parent.mkdir(parents=True, exist_ok=True)
        write_order(self.folder.order, order)
        write_text(self.script, script)
        write_text(self._file, json.dumps({"name": name}))

    def write_job_id(self, name: str, job_id: str) -> None:
        write_text(self._file, json.dumps({"name": name, "job_id": job_id}))

    def delete(self) -> None:
        """The submission was refused."""
        self._file.unlink(missing_ok=True)

    @property
    def stop_requested(self) -> bool:
        return self.folder.stop.exists()

    @property
    def stop_reason(self) -> str:
        """The reason of the last stop request."""
        return str(_read(self.folder.stop).get("reason", "canceled"))

    def request_stop(self, reason: str) -> None:
        write_text(self.folder.stop, json.dumps({"reason": reason}))

    @property
    def _file(self) -> Path:
        return self.folder.root / "slurm" / "job.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_regular(path, _MAX_BYTES), max_bytes=_MAX_BYTES)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
