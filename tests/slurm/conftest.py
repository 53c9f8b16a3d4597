"""One real Slurm for all tests of a session, and one target per test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_cluster import four_nodes

from runyard import ComputeTarget, Experiment, Run, ScriptRunConfig, SlurmCompute, Workspace
from support import a_home, logged_errors

_names = (f"slurm-{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def slurm_folder() -> Iterator[Path]:
    with four_nodes() as folder:
        yield folder


@pytest.fixture(scope="session")
def slurm_home(slurm_folder: Path) -> Iterator[Path]:
    """For a yard that is started with the variables of this Slurm; yards of other tests do not have them."""
    with a_home() as folder:
        yield folder
        errors = logged_errors(folder)
    assert errors == []


@pytest.fixture
def home(slurm_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNYARD_HOME", str(slurm_home))
    return slurm_home


@pytest.fixture
def partition(slurm_folder: Path, workspace: Workspace) -> Iterator[SlurmCompute]:
    target = ComputeTarget.attach(workspace, next(_names), SlurmCompute.attach_configuration("main"))
    assert isinstance(target, SlurmCompute)
    yield target
    target.detach()


@pytest.fixture
def submit(experiment: Experiment, partition: SlurmCompute, project: Callable[..., Path]) -> Callable[..., Run]:
    def submit_script(script: str, *arguments: object, job: object = None, **settings: object) -> Run:
        config = ScriptRunConfig(
            project(train=script),
            script="train.py",
            arguments=list(arguments),
            compute_target=partition,
            distributed_job_config=job,
        )
        config.run_config.environment.python.user_managed_dependencies = True
        for name, value in settings.items():
            setattr(config.run_config, name, value)
        return experiment.submit(config)

    return submit_script
