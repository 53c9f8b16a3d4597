"""A web service: what was asked for, and the names of its files.

The folder is the truth, as with runs: the yard writes what it wants, the keeper of the service makes it so and writes
what is, and either of them may be away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

from runyard.spec.environment import EnvironmentSpec


class ServiceFolder(NamedTuple):
    root: Path

    @property
    def wanted(self) -> Path:
        """What the yard wants: a Wanted as JSON. Holds the keys, so it is the owner's alone."""
        return self.root / "wanted.json"

    @property
    def found(self) -> Path:
        """What the keeper made of it: which workers of which version are there, and since when."""
        return self.root / "found.json"

    @property
    def lock(self) -> Path:
        """Locked by the keeper as long as it lives; holds its pid."""
        return self.root / "keeper.lock"

    @property
    def deleted(self) -> Path:
        """There when the service was deleted: whoever finds it takes the rest away."""
        return self.root / "deleted"

    @property
    def keeper_log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def deploy_log(self) -> Path:
        """How its versions were prepared: environments, code, models."""
        return self.root / "deploy.log"

    @property
    def service_log(self) -> Path:
        """What the scoring scripts print, and the tracebacks of those that fail."""
        return self.root / "service.log"

    @property
    def request_log(self) -> Path:
        return self.root / "requests.log"

    @property
    def counts(self) -> Path:
        """A file of counters per worker, mapped into its memory."""
        return self.root / "counts"

    def version(self, number: int) -> Path:
        return self.root / "versions" / str(number)

    def order(self, number: int) -> Path:
        """How a worker of this version is started: a WorkerOrder as JSON."""
        return self.version(number) / "order.json"

    def work(self, number: int) -> Path:
        """The code, with `azureml-models` beside it: the working directory of its workers."""
        return self.version(number) / "work"

    def openapi(self, number: int) -> Path:
        return self.version(number) / "swagger.json"

    def socket(self, number: int) -> Path:
        """Where the workers of a version get its share from those of the version that is called."""
        return self.root / f"v{number}.sock"


@dataclass(frozen=True)
class Limits:
    body_mb: float = 100.0
    bodies_mb: float = 400.0  # of all requests together that one worker has not answered yet
    timeout_s: float = 60.0  # for one call of run()
    waiting: int = 100  # requests that wait in one worker; the next one is told to come back
    connections: int = 1000  # of one worker
    receive_s: float = 30.0  # for a request to arrive, and for an answer to be taken
    idle_s: float = 75.0  # for the next request of a connection


@dataclass(frozen=True)
class Batching:
    """Requests that are there together are scored together."""

    largest: int = 32  # rows
    wait_ms: float = 0.0  # for more to come; 0 = whatever has arrived by now


@dataclass(frozen=True)
class ServiceConfiguration:
    """What a service is like whatever it serves."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 = a free one, kept from then on
    workers: int = 1
    auth_enabled: bool = False
    limits: Limits = field(default_factory=Limits)
    batching: Optional[Batching] = None


@dataclass(frozen=True)
class VersionSpec:
    """What one version of it serves, and how."""

    entry_script: str = ""  # below the code; empty = the model itself, which has to be an ONNX one
    snapshot_id: Optional[str] = None
    environment: Optional[EnvironmentSpec] = None  # None = that of the run that trained the model
    description: Optional[str] = None


@dataclass(frozen=True)
class Wanted:
    """For the keeper. ``generation`` counts the changes: what was found says which of them it has seen."""

    generation: int
    name: str
    host: str
    port: int
    workers: int
    auth_enabled: bool
    keys: tuple[str, ...]
    traffic: dict[str, int]  # version -> per cent
    limits: Limits = field(default_factory=Limits)
    batching: Optional[Batching] = None


@dataclass(frozen=True)
class WorkerOrder:
    argv: tuple[str, ...]
    variables: dict[str, str]
    entry_script: str
    model: str = ""  # the file of an ONNX model that is served without a script
    details: dict[str, Any] = field(default_factory=dict)  # what is known of that model's inputs and outputs
