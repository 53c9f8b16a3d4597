"""The contract of a compute target: a handful of verbs. What only some targets can do is a class of its own here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from runyard.launch.order import WorkOrder
from runyard.lifecycle.state import End
from runyard.lifecycle.warning import RunWarning


@dataclass(frozen=True)
class Gpu:
    index: int
    name: str = ""
    memory_gb: float = 0.0


@dataclass(frozen=True)
class Capacity:
    cpus: int
    memory_gb: float
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True)
class Handle:
    """Names one started order. It can be made anew from what is stored, so a yard that was away can ask about it."""

    run_id: str
    folder: str  # root of the RunFolder
    reference: str = ""  # the target's own name for it, where it has one


@dataclass(frozen=True)
class Observed:
    """An agent that is alive, or that will be as soon as the target's own scheduler lets it."""

    pid: int | None = None  # None: alive, and about to write its pid; or on another machine
    waiting: str | None = None  # not None: it waits in the target's own line, for this reason; there is no agent yet


class Compute(ABC):
    """Starts an agent for an order, and answers for it. Every verb may be called from any thread, and twice.

    The agent writes what happens to the run's folder; a target only says whether the agent is there. An agent writes
    its last word before it goes, so whoever finds it gone reads the folder once more before calling it lost.
    """

    @abstractmethod
    def render(self, order: WorkOrder) -> str:
        """What would be started, as text to read. Pure: nothing is written, nothing is asked."""

    @abstractmethod
    def start(self, order: WorkOrder) -> Handle:
        """Returns as soon as the run has an agent. Starting an order again finds the first agent and changes nothing.

        Raises ComputeTargetException when no agent could be started; then nothing was.
        """

    @abstractmethod
    def status(self, handles: Sequence[Handle]) -> dict[Handle, Observed]:
        """Asked for many at once; one whose agent is gone is absent from the answer. Disturbs nobody."""

    @abstractmethod
    def stop(self, handle: Handle, reason: str = "canceled") -> None:
        """Tells the agent to stop its run; returns at once. A run that has ended, or never began, is left as it is.

        ``reason`` is the value of an EndReason, and becomes the run's.
        """

    @abstractmethod
    def sweep(self, handle: Handle) -> int:
        """After the agent is gone: stop what is left of the run's processes; returns how many could not be. Blocks."""

    @abstractmethod
    def capacity(self) -> Capacity:
        """What one node of the target has; found once and remembered."""

    def job_text(self, order: WorkOrder) -> str:
        """What the target's own scheduler is given, as text to read; "" where there is none. Pure."""
        return ""

    def why_gone(self, handle: Handle) -> End | None:
        """What the target itself knows about an agent that is gone without a word; None: no more than that."""
        return None

    def collect(self, handle: Handle, names: Sequence[str]) -> tuple[RunWarning, ...]:
        """Brings what an ended run left in these folders of its working copy to the run's own folder, where it is not
        there already; returns warnings: what could not be brought. Blocks."""
        return ()

    def forget(self, handle: Handle) -> None:  # noqa: B027 - most keep nothing of their own
        """All of the run was collected: nothing of it is needed on the target any more."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """The yard goes, or the target is removed. Runs go on."""
