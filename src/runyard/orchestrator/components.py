"""The parts of a yard that the orchestrator works with, created by `yard.daemon`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runyard.compute.base import Handle
from runyard.compute.registry import LOCAL, Target, Targets
from runyard.data.datasets import Datasets
from runyard.data.staging import Stager
from runyard.environments.manager import EnvironmentManager
from runyard.secrets.vault import Vault
from runyard.snapshots.store import SnapshotStore
from runyard.spec.folder import HomeFolder, RunFolder
from runyard.store.database import Database
from runyard.store.runs import RunRecord, RunStore
from runyard.tracking.artifacts import Artifacts


@dataclass(frozen=True)
class Components:
    home: Path
    socket: Path
    node_package: Path
    database: Database
    runs: RunStore
    snapshots: SnapshotStore
    environments: EnvironmentManager
    artifacts: Artifacts
    targets: Targets
    stager: Stager
    datasets: Datasets
    vault: Vault
    # URL and token for a script on the yard's machine, by run id and whether the script needs them
    address: Callable[[str, bool], tuple[str, str] | None] = lambda run_id, is_needed: None

    def folder(self, run_id: str) -> RunFolder:
        return HomeFolder(self.home).run(run_id)

    def target(self, record: RunRecord) -> Target:
        return self.targets.get(record.target or LOCAL)

    def handle(self, record: RunRecord) -> Handle:
        return Handle(record.run_id, str(self.folder(record.run_id).root))
