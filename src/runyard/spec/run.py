"""The specification of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from runyard.spec.data import DataUse
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.launch import Launch, Single
from runyard.spec.resources import Resources

RETRY_ON = ("node lost", "preempted")  # default: failures of the machines, not of the script


@dataclass(frozen=True)
class NoEffect:
    """An SDK argument that has no effect in Runyard; recorded so that it is not ignored silently."""

    owner: str  # class or function, such as "AmlCompute"
    argument: str
    value: str  # for display; empty for a secret
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
    secrets: dict[str, str] = field(default_factory=dict)  # names of stored secrets, by variable
    max_run_duration_seconds: Optional[int] = None
    directories_to_watch: tuple[str, ...] = ("logs",)  # stored while the script runs; `outputs` is stored at its end
    grace_s: float = 10.0  # seconds between SIGTERM and SIGKILL
    stall_after_s: Optional[float] = 1800.0  # seconds without a log line, metric or CPU time; None: never
    stall_action: str = "report"  # "report": collect stacks and continue; "stop": end the run
    max_attempts: int = 1  # maximum number of starts, if it ends for a reason in retry_on
    retry_on: tuple[str, ...] = RETRY_ON  # values of EndReason
    no_effect: tuple[NoEffect, ...] = ()
    data: tuple[DataUse, ...] = ()  # inputs, and outputs that are uploaded
