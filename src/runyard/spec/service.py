"""The specification of a web service, and the names of its files.

As with runs, the folder is the source of truth: the yard writes the desired state, the service's supervisor
establishes it and writes the current status, and either of them may be down at times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

from runyard.spec.environment import EnvironmentSpec


class ServiceFolder(NamedTuple):
    root: Path

    @property
    def desired_state(self) -> Path:
        """A DesiredState as JSON, written by the yard. Contains keys: readable by the owner only."""
        return self.root / "wanted.json"

    @property
    def status(self) -> Path:
        """The workers of each version and since when they run, written by the supervisor."""
        return self.root / "found.json"

    @property
    def lock(self) -> Path:
        """Locked by the supervisor while it lives; contains its process id."""
        return self.root / "keeper.lock"

    @property
    def control(self) -> Path:
        """Socket of the supervisor, which its workers connect to."""
        return self.root / "keeper.sock"

    @property
    def deleted_marker(self) -> Path:
        """Exists if the service was deleted and the remaining files are still to be removed."""
        return self.root / "deleted"

    @property
    def supervisor_log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def deploy_log(self) -> Path:
        """Output of preparing the versions: environments, code, models."""
        return self.root / "deploy.log"

    @property
    def service_log(self) -> Path:
        """Output and tracebacks of the scoring scripts."""
        return self.root / "service.log"

    @property
    def request_log(self) -> Path:
        return self.root / "requests.log"

    @property
    def counts(self) -> Path:
        """One memory-mapped file of counters per worker."""
        return self.root / "counts"

    def version(self, number: int) -> Path:
        return self.root / "versions" / str(number)

    def order(self, number: int) -> Path:
        """Instructions for starting a worker of this version: a WorkerOrder as JSON."""
        return self.version(number) / "order.json"

    def work(self, number: int) -> Path:
        """The working directory of the workers: the code and `azureml-models`."""
        return self.version(number) / "work"

    def openapi(self, number: int) -> Path:
        return self.version(number) / "swagger.json"

    def socket(self, number: int) -> Path:
        """Socket on which the workers of a version receive its share of the traffic from the first version."""
        return self.root / f"v{number}.sock"


@dataclass(frozen=True)
class Limits:
    body_mb: float = 100.0
    bodies_mb: float = 400.0  # total of the requests that one worker has not answered yet
    timeout_s: float = 60.0  # for one call of run()
    waiting: int = 100  # requests queued in one worker; further ones are rejected with a retry hint
    connections: int = 1000  # per worker
    receive_s: float = 30.0  # to receive a request, and to send a response
    idle_s: float = 75.0  # until the next request of a connection
    retries: int = 1  # of a scoring call whose worker died; 0 if it must not be repeated


@dataclass(frozen=True)
class Batching:
    """Score concurrent requests in one call."""

    largest: int = 32  # rows
    wait_ms: float = 0.0  # to wait for more requests; 0 = only those that have already arrived


@dataclass(frozen=True)
class ServiceConfiguration:
    """Settings of a service that are independent of its version."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 = choose a free one once
    workers: int = 1
    auth_enabled: bool = False
    limits: Limits = field(default_factory=Limits)
    batching: Optional[Batching] = None


@dataclass(frozen=True)
class VersionSpec:
    """The code, model and environment of one version."""

    entry_script: str = ""  # below the code; empty = serve the ONNX model directly
    snapshot_id: Optional[str] = None
    environment: Optional[EnvironmentSpec] = None  # None = the environment of the run that trained the model
    description: Optional[str] = None


@dataclass(frozen=True)
class DesiredState:
    """Instructions for the supervisor. ``generation`` counts changes; the status contains the last applied one."""

    generation: int
    name: str
    host: str
    port: int
    workers: int
    auth_enabled: bool
    keys: tuple[str, ...]
    traffic: dict[str, int]  # version -> percent
    limits: Limits = field(default_factory=Limits)
    batching: Optional[Batching] = None


@dataclass(frozen=True)
class WorkerOrder:
    argv: tuple[str, ...]
    variables: dict[str, str]
    entry_script: str
    model: str = ""  # the file of an ONNX model that is served without a script
    details: dict[str, Any] = field(default_factory=dict)  # inputs and outputs of that model
