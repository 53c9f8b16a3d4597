"""The files of one run: every name that crosses between the yard, the agent and the script is in this class.

The folder is the truth. The agent and the script append to it first and tell the yard afterwards, so that a yard
which was away reads on from where it stopped, and nothing depends on it being there.
"""

from __future__ import annotations

TYPE_CHECKING = False  # every training script imports this, and typing or dataclasses would take 10 ms more
if TYPE_CHECKING:
    from pathlib import Path


class RunFolder:
    JOURNAL = "journal"

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def order(self) -> Path:
        """What the agent was told: a WorkOrder as JSON."""
        return self.root / "order.json"

    @property
    def work(self) -> Path:
        """The copy of the code: the script's working directory, with its `outputs` and `logs`."""
        return self.root / "work"

    @property
    def logs(self) -> Path:
        """`20_environment_log.txt`, `70_driver_log.txt`: shown to people as `azureml-logs/…`."""
        return self.root / "azureml-logs"

    @property
    def environment_log(self) -> Path:
        return self.logs / "20_environment_log.txt"

    def driver_log(self, suffix: str = "") -> Path:
        return self.logs / f"70_driver_log{suffix}.txt"

    @property
    def data_log(self) -> Path:
        return self.logs / "30_data_log.txt"

    @property
    def data(self) -> Path:
        """Private copies of data, by the names of their uses."""
        return self.root / "data"

    @property
    def data_record(self) -> Path:
        """Which trees of the cache the run reads: `{"trees": […]}`. They stay while it does."""
        return self.root / "data.json"

    @property
    def journal(self) -> Path:
        """Metrics, one pair of files per process that logs."""
        return self.root / self.JOURNAL

    @property
    def system(self) -> Path:
        """What the agents measured on their nodes: a journal as that of the metrics."""
        return self.root / "system"

    @property
    def events(self) -> Path:
        """What the agent saw, one JSON object a line, appended only."""
        return self.root / "events.jsonl"

    @property
    def agent_lock(self) -> Path:
        """Locked by the agent as long as it lives; holds its pid."""
        return self.root / "agent.lock"

    @property
    def client_lock(self) -> Path:
        """Locked by the process of an interactive run as long as it lives."""
        return self.root / "client.lock"

    @property
    def lock_file(self) -> Path:
        """The resolved packages of the environment."""
        return self.root / "environment.lock.txt"

    def node(self, node_rank: int) -> RunFolder:
        """What is one node's own: its agent's order, lock and events. The lead's are those of the run itself."""
        return self if node_rank == 0 else RunFolder(self.root / "nodes" / str(node_rank))

    @property
    def lead(self) -> Path:
        """Where the agent of the first node listens: `{"place": "host:port", "attempt": 1}`, for the other nodes."""
        return self.root / "lead.json"

    @property
    def mpirun_log(self) -> Path:
        return self.logs / "60_mpirun_log.txt"

    @property
    def stacks(self) -> Path:
        """Where every process was when nothing moved any more."""
        return self.work / "logs" / "stalled"
