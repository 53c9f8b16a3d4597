"""What the orchestrator works with: one of each room, handed to it by the yard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard.compute.registry import Target, Targets
from runyard.data.datasets import Datasets
from runyard.data.staging import Stager
from runyard.environments.manager import EnvironmentManager
from runyard.snapshots.store import SnapshotStore
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.store.database import Database
from runyard.store.runs import RunRecord, RunStore
from runyard.tracking.artifacts import Artifacts


@dataclass(frozen=True)
class Rooms:
    home: Path
    socket: Path
    kit: Path
    database: Database
    runs: RunStore
    snapshots: SnapshotStore
    environments: EnvironmentManager
    artifacts: Artifacts
    targets: Targets
    stager: Stager
    datasets: Datasets
    address: Callable[[], tuple[str, str] | None] = lambda: None  # and the token, for scripts on this machine

    def folder(self, run_id: str) -> RunFolder:
        return HomeFolder(self.home).run(run_id)

    def target(self, record: RunRecord) -> Target:
        return self.targets.get(record.target or "local")
