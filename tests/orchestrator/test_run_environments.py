"""The environment of a run is prepared once, and again for a later attempt."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from runyard.compute.base import Capacity
from runyard.compute.scheduling.queue import Placement
from runyard.environments.manager import EnvironmentManager, Prepared
from runyard.lifecycle.state import Attempt, End, EndReason, Life
from runyard.orchestrator.prepare import RunEnvironments
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.folder import HomeFolder
from runyard.spec.json import to_json
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord


class CountingManager(EnvironmentManager):
    prepared = 0

    def prepare(self, *arguments: Any, **options: Any) -> Prepared:
        self.prepared += 1
        return super().prepare(*arguments, **options)


def test_an_environment_is_prepared_once_per_run(tmp_path: Path) -> None:
    manager = CountingManager(tmp_path / "environments")
    compute = SimpleNamespace(remote_environments=None, capacity=lambda: Capacity(1, 1.0))
    components: Any = SimpleNamespace(
        environments=manager,
        node_package=tmp_path / "kit",
        folder=HomeFolder(tmp_path).run,
        target=lambda record: SimpleNamespace(compute=compute),
    )
    spec = RunSpec(script="train.py", environment=EnvironmentSpec(user_managed=True, interpreter=sys.executable))
    record = RunRecord("run", "digits", Life(), 1.0, spec=to_json(spec), target="local")
    environments = RunEnvironments(components)
    prepared = environments.prepare(record, lambda text: None, threading.Event())
    assert environments.take(record, Placement("run")).prepared == prepared
    assert manager.prepared == 1
    earlier = (Attempt(End(EndReason.NODE_LOST)),)
    retried = replace(record, life=replace(record.life, earlier_attempts=earlier))
    assert environments.take(retried, Placement("run")).prepared == prepared
    assert manager.prepared == 2
