"""The files of a run's folder about its Slurm job: the submitted script, the job's name and id, and its output."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.launch.order import WorkOrder
from runyard.posix.atomic_write import write_text
from runyard.spec.folder import RunFolder
from runyard.spec.json import to_json

_TAIL_BYTES = 4096


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
        return _read(self._file).get("job_id")

    @property
    def grace_s(self) -> float:
        return float(_read(self.folder.order).get("grace_s", 10.0))

    @property
    def nodes(self) -> int:
        return int(_read(self.folder.order).get("resources", {}).get("nodes", 1))

    @property
    def agent_pid(self) -> int | None:
        """The pid on the agent's own node."""
        with suppress(OSError, ValueError):
            return int(self.folder.agent_lock.read_text())
        return None

    @property
    def has_ended(self) -> bool:
        """True once the agent has recorded how this attempt ended. Slurm may keep the job for a while after that."""
        try:
            lines = self.folder.events.read_bytes().splitlines()
        except OSError:
            return False
        attempt = _read(self.folder.order).get("attempt", 1)
        for line in reversed(lines):
            with suppress(ValueError):  # an incomplete line of an agent that was killed while it wrote
                event = json.loads(line)
                if event.get("event") in ("script_ended", "launch_failed"):
                    return bool(event.get("attempt", 1) == attempt)
        return False

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
        write_text(self.folder.order, json.dumps(to_json(order)))
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
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
