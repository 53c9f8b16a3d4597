"""The contract of a compute target. Abilities that only some targets have are separate classes.

A target declares an ability by setting the attribute of ``Compute`` that is None by default; callers test the
attribute, never the class of a target.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from runyard.data.cache import Leaf
from runyard.launch.order import WorkOrder
from runyard.launch.variables import clean_environment
from runyard.lifecycle.state import End
from runyard.lifecycle.warning import RunWarning
from runyard.posix.machine import Capacity as Capacity  # part of the contract
from runyard.spec.resources import Resources

ProgressCallback = Callable[[str], None]  # called with one line of text


@dataclass(frozen=True)
class Handle:
    """Identifies a started order. It can be rebuilt from stored values, so a restarted yard can ask about the run."""

    run_id: str
    folder: str  # root of the RunFolder
    reference: str = ""  # the target's own identifier, if it has one


@dataclass(frozen=True)
class AgentStatus:
    """An agent that is alive, or that the target's own scheduler has yet to start."""

    pid: Optional[int] = None  # None: not written yet, or on another machine
    waiting_reason: Optional[str] = None  # set while the run waits in the target's own queue: no agent exists yet


@dataclass(frozen=True)
class EnvironmentRequest:
    spec: dict[str, Any]  # an EnvironmentSpec as JSON
    run_id: str
    substitute_python: bool  # a host without the named interpreter may use its own Python
    uv: Optional[Path] = None  # builds the environment on hosts of the same platform
    files: tuple[Path, ...] = ()  # local packages that the environment needs


@dataclass(frozen=True)
class RemoteEnvironment:
    prepared: dict[str, Any]  # a Prepared as JSON, with paths that are valid on the host
    mpirun: str  # path of the program; "" if there is none
    host: str
    platform: str  # for messages: "x86_64, Python 3.11.7"


class RemoteEnvironments(ABC):
    """Environments are built by the target on its own hosts."""

    shared = False  # True: all nodes see one environment, which is prepared as that of node 0

    @abstractmethod
    def prepare(
        self,
        request: EnvironmentRequest,
        nodes: Optional[Sequence[int]],
        *,
        report: ProgressCallback,
        canceled: threading.Event,
    ) -> dict[int, RemoteEnvironment]:
        """Prepare the environment and return it by node index. Blocks.

        Args:
            request: The environment.
            nodes: The nodes that need it; with None, every node that can be reached.
            report: Receives progress messages.
            canceled: When it is set, stop soon and raise.
        """


@dataclass(frozen=True)
class DataUpload:
    """Files for a run, identified by content."""

    name: str  # for messages
    key: str  # identifies the set of files
    leaves: tuple[Leaf, ...]
    contents: dict[str, Path]  # digest -> file on the yard's machine
    private: str = ""  # name of a copy that only this run uses; "" = a read-only tree that runs share


class RemoteData(ABC):
    """Data is copied by the target to its own hosts."""

    @abstractmethod
    def upload(
        self,
        run_id: str,
        folder: str,
        data: DataUpload,
        nodes: Sequence[int],
        *,
        report: ProgressCallback,
        canceled: threading.Event,
    ) -> str:
        """Copy the files that the nodes lack. Blocks.

        Args:
            run_id: The run that uses the data.
            folder: Root of its RunFolder on the yard's machine.
            data: The files.
            nodes: Indices of the nodes of the run.
            report: Receives progress messages.
            canceled: When it is set, stop soon and raise.

        Returns:
            The folder that the processes see; `start` translates it for each host.
        """


class ExternalScheduler(ABC):
    """The target has its own queue, such as Slurm's: runs are submitted immediately and wait there."""

    @abstractmethod
    def fit(self, resources: Resources) -> tuple[Resources, tuple[str, ...]]:
        """As ``Queue.fit``."""

    @abstractmethod
    def job_script(self, order: WorkOrder) -> str:
        """The text that is submitted for the order. Pure."""

    @abstractmethod
    def waiting_reason(self, run_id: str) -> str:
        """The scheduler's reason why a submitted run has not started; "" if it is not waiting."""

    def describe(self) -> dict[str, Any]:
        """JSON facts for the target's status."""
        return {}


class Compute(ABC):
    """Starts the agent of a run and reports on it. Every method is thread-safe and may be repeated.

    The agent records what happens in the run's folder; a target reports only whether the agent exists. An agent writes
    its last event before it exits, so a caller that finds it gone reads the folder once more before it treats the run
    as lost.
    """

    copies_code = False  # True: `start` sends the working copy to other machines
    on_yard_machine = False  # True: processes reach the yard's TCP port on the loopback address
    remote_environments: Optional[RemoteEnvironments] = None  # None: nodes see the yard's environments folder
    remote_data: Optional[RemoteData] = None  # None: nodes see the yard's data cache
    scheduler: Optional[ExternalScheduler] = None  # None: the yard's queue decides when a run starts

    @abstractmethod
    def render(self, order: WorkOrder) -> str:
        """Return what would be started, as text. Pure."""

    @abstractmethod
    def start(self, order: WorkOrder, digests: Optional[Mapping[str, str]] = None) -> Handle:
        """Start the agent, and return when it exists or is submitted.

        Starting an order again finds the first agent and changes nothing.

        Args:
            order: The run.
            digests: SHA-256 of files of the working copy, by relative path, that a target which copies the files
                need not compute. Given if ``copies_code``.

        Raises:
            ComputeTargetException: No agent was started.
        """

    @abstractmethod
    def status(self, handles: Sequence[Handle]) -> dict[Handle, AgentStatus]:
        """Return the agents that exist; a handle whose agent is gone is absent. Called often, for many runs."""

    @abstractmethod
    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        """Request that the agent stop its run, and return immediately. Does nothing for a run that has ended.

        ``reason`` is the value of an EndReason and becomes the run's.
        """

    @abstractmethod
    def stop_leftovers(self, handle: Handle) -> int:
        """After the agent is gone, stop the processes it left; return how many could not be stopped. Blocks."""

    @abstractmethod
    def capacity(self) -> Capacity:
        """Return the capacity of one node. Cached."""

    def inherited_variables(self) -> Mapping[str, str]:
        """Return the environment variables of a node, which each process gets in addition to the run's own."""
        return clean_environment(os.environ)

    def explain_loss(self, handle: Handle) -> Optional[End]:
        """Return the target's own explanation for an agent that disappeared; None if it has none."""
        return None

    def collect(self, handle: Handle, names: Sequence[str]) -> tuple[RunWarning, ...]:
        """Copy these folders of an ended run's working copy to its RunFolder, if they are elsewhere. Blocks."""
        return ()

    def discard(self, handle: Handle) -> None:  # noqa: B027 - most targets store no files
        """Delete the target's own files of a run, all of which were collected."""

    def close(self) -> None:  # noqa: B027 - most targets hold no resources
        """Release connections: the yard is stopping, or the target is being removed. Runs continue."""
