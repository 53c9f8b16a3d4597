"""Writes `hyperdrive.txt`, the log of a sweep: one line per decision, with its reason."""

from __future__ import annotations

from datetime import datetime, timezone

from runyard import clock
from runyard.lifecycle.state import End
from runyard.spec.folder import RunFolder
from runyard.spec.sweep import SweepSpec, Trial, child_label
from runyard.store.runs import RunRecord


class SweepLog:
    def __init__(self, sweep_id: str, folder: RunFolder) -> None:
        self._sweep_id = sweep_id
        self._path = folder.logs / "hyperdrive.txt"

    def begin(self, spec: SweepSpec) -> None:
        description = f"{spec.sampling.name} sampling of {', '.join(spec.sampling.space)}"
        if spec.sampling.population:
            description += f", {spec.sampling.population.size} in a generation"
        policy = f", {spec.policy.name} policy" if spec.policy else ""
        self._write(
            f"{description}; {spec.goal} {spec.primary_metric}; up to {spec.max_total_runs} children, "
            f"{spec.max_concurrent_runs} at a time{policy}; seed {spec.sampling.seed}"
        )

    def proposed(self, trial: Trial) -> None:
        values = ", ".join(f"{name}={value}" for name, value in trial.parameters.items())
        resumed = f", resumed from {child_label(self._sweep_id, trial.resumes)}" if trial.resumes else ""
        self._write(f"child {trial.number} ({trial.run_id}): {values}{resumed}")

    def stopped(self, trial: Trial) -> None:
        self._write(f"child {trial.number}: {trial.stopped}")

    def ended(self, trial: Trial, record: RunRecord) -> None:
        if not trial.reports:
            result = "no reports"
        elif trial.best is None:
            result = f"no finite value in {trial.reports} reports"
        else:
            result = f"best {trial.best:.6g} in {trial.reports} reports"
        reason = f": {record.life.end.message}" if record.life.end and record.life.end.message else ""
        self._write(f"child {trial.number}: {record.life.state.value}, {result}{'' if trial.stopped else reason}")

    def warn(self, text: str) -> None:
        self._write(f"warning: {text}")

    def concluded(self, trials: list[Trial], best: Trial | None, end: End) -> None:
        counts: dict[str, int] = {}
        for trial in trials:
            counts[trial.state] = counts.get(trial.state, 0) + 1
        children = ", ".join(f"{number} {state}" for state, number in sorted(counts.items())) or "no children"
        best_child = f"; best: {best.best:.6g}, child {best.number} ({best.run_id})" if best else ""
        self._write(f"{end.message or 'the sweep has completed'}: {children}{best_child}")

    def _write(self, text: str) -> None:
        at = datetime.fromtimestamp(clock.now(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"[{at}] {text}\n")
