"""`hyperdrive.txt`: what a sweep did and why, a line at a time, as people follow it."""

from __future__ import annotations

from datetime import datetime, timezone

from runyard import clock
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.sweep import SweepSpec, Trial, called
from runyard.store.runs import RunRecord


class Diary:
    def __init__(self, sweep_id: str, folder: RunFolder) -> None:
        self._sweep_id = sweep_id
        self._path = folder.logs / "hyperdrive.txt"

    def begin(self, spec: SweepSpec) -> None:
        how = f"{spec.sampling.name} sampling of {', '.join(spec.sampling.space)}"
        if spec.sampling.population:
            how += f", {spec.sampling.population.size} in a generation"
        policy = f", {spec.policy.name} policy" if spec.policy else ""
        self._write(
            f"{how}; {spec.goal} {spec.primary_metric}; up to {spec.max_total_runs} children, "
            f"{spec.max_concurrent_runs} at a time{policy}; seed {spec.sampling.seed}"
        )

    def proposed(self, trial: Trial) -> None:
        values = ", ".join(f"{name}={value}" for name, value in trial.parameters.items())
        goes_on = f", going on from {called(self._sweep_id, trial.resumes)}" if trial.resumes else ""
        self._write(f"child {trial.number} ({trial.run_id}): {values}{goes_on}")

    def stopped(self, trial: Trial) -> None:
        self._write(f"child {trial.number}: {trial.stopped}")

    def ended(self, trial: Trial, record: RunRecord) -> None:
        if not trial.reports:
            found = "without a report"
        elif trial.best is None:
            found = f"no number in {trial.reports} reports"
        else:
            found = f"best {trial.best:.6g} in {trial.reports} reports"
        why = f": {record.life.end.message}" if record.life.end and record.life.end.message else ""
        self._write(f"child {trial.number}: {record.life.state.value}, {found}{'' if trial.stopped else why}")

    def warn(self, text: str) -> None:
        self._write(f"warning: {text}")

    def concluded(self, trials: list[Trial], best: Trial | None, end: End) -> None:
        counts: dict[str, int] = {}
        for trial in trials:
            counts[trial.state] = counts.get(trial.state, 0) + 1
        children = ", ".join(f"{number} {state}" for state, number in sorted(counts.items())) or "no children"
        found = f"; best: {best.best:.6g}, child {best.number} ({best.run_id})" if best else ""
        self._write(f"{end.message or 'the sweep is through'}: {children}{found}")

    def _write(self, text: str) -> None:
        at = datetime.fromtimestamp(clock.now(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"[{at}] {text}\n")
