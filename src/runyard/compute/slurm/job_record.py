"""What a run's folder holds about its job: the script as it was submitted, its name and number, and its output."""

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

_TAIL = 4096


@dataclass(frozen=True)
class JobRecord:
    folder: RunFolder

    @property
    def script(self) -> Path:
        return self.folder.root / "slurm" / "job.sh"

    @property
    def name(self) -> str:
        """Of the job that was submitted last, or was about to be."""
        return str(self._said().get("name", ""))

    @property
    def job_id(self) -> str | None:
        """None: never submitted; or the yard was killed before it had heard the number."""
        return self._said().get("job_id")

    @property
    def grace_s(self) -> float:
        return float(_read(self.folder.order).get("grace_s", 10.0))

    @property
    def nodes(self) -> int:
        return int(_read(self.folder.order).get("resources", {}).get("nodes", 1))

    @property
    def agent_pid(self) -> int | None:
        """On its own node; only there it says something."""
        with suppress(OSError, ValueError):
            return int(self.folder.agent_lock.read_text())
        return None

    @property
    def has_last_word(self) -> bool:
        """Whether the agent has told how this attempt ended. Slurm may keep the job for a while nevertheless."""
        try:
            lines = self.folder.events.read_bytes().splitlines()
        except OSError:
            return False
        attempt = _read(self.folder.order).get("attempt", 1)
        for line in reversed(lines):
            with suppress(ValueError):  # half a line of an agent that was killed while it wrote
                said = json.loads(line)
                if said.get("event") in ("script_ended", "launch_failed"):
                    return bool(said.get("attempt", 1) == attempt)
        return False

    @property
    def output(self) -> str:
        """The end of what the batch script itself printed: it speaks only when an agent could not begin."""
        outputs = sorted(self.script.parent.glob("output-*.txt"))
        with suppress(OSError, IndexError):
            return outputs[-1].read_bytes()[-_TAIL:].decode("utf-8", "replace").strip()
        return ""

    def announce(self, order: WorkOrder, script: str, name: str) -> None:
        """Before sbatch is asked: should the yard be killed meanwhile, the next one finds the job by its name."""
        self.script.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.folder.order, json.dumps(to_json(order)))
        write_text(self.script, script)
        write_text(self._file, json.dumps({"name": name}))

    def submitted(self, name: str, job_id: str) -> None:
        write_text(self._file, json.dumps({"name": name, "job_id": job_id}))

    def refused(self) -> None:
        self._file.unlink(missing_ok=True)

    @property
    def is_asked_to_stop(self) -> bool:
        return self.folder.stop.exists()

    @property
    def stop_reason(self) -> str:
        """As it was last asked for."""
        return str(_read(self.folder.stop).get("reason", "canceled"))

    def ask_to_stop(self, reason: str) -> None:
        write_text(self.folder.stop, json.dumps({"reason": reason}))

    @property
    def _file(self) -> Path:
        return self.folder.root / "slurm" / "job.json"

    def _said(self) -> dict[str, Any]:
        return _read(self._file)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
