"""One run, as asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from runyard.spec.data import DataUse
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.launch import Launch, Single
from runyard.spec.resources import Resources

RETRY_ON = ("node lost", "preempted")  # what the machines did to a run, and another try may cure


@dataclass(frozen=True)
class NoEffect:
    """An argument that was given, and changes nothing here: kept so that nothing is dropped in silence."""

    owner: str  # whose argument: "AmlCompute"
    argument: str
    value: str  # as it is shown; of a secret nothing
    why: str


@dataclass(frozen=True)
class RunSpec:
    script: str  # relative to the snapshot, with forward slashes
    arguments: tuple[str, ...] = ()
    environment: EnvironmentSpec = field(default_factory=EnvironmentSpec)
    resources: Resources = field(default_factory=Resources)
    launch: Launch = field(default_factory=Single)
    target: str = "local"
    framework: str = "Python"
    communicator: str = "None"
    environment_variables: dict[str, str] = field(default_factory=dict)
    max_run_duration_seconds: Optional[int] = None
    directories_to_watch: tuple[str, ...] = ("logs",)  # kept while the script runs; `outputs` is kept at its end
    grace_s: float = 10.0  # between the polite signal and the last one
    stall_after_s: Optional[float] = 1800.0  # without a log line, a metric or CPU time of any process; None: never
    stall_action: str = "report"  # "report": collect the stacks and go on; "stop": then end the run
    max_attempts: int = 1  # how often the script may be started, if it ends for one of the reasons below
    retry_on: tuple[str, ...] = RETRY_ON  # values of EndReason; none of them is the script's own doing
    no_effect: tuple[NoEffect, ...] = ()
    data: tuple[DataUse, ...] = ()  # what the script reads, and what of its writing is uploaded
