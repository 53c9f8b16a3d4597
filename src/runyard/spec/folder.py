"""Names of the files that several processes share: in the yard's home folder, and in the folder of one run.

A run's folder is the source of truth. The agent and the script write to it first and notify the yard afterwards, so a
yard that was down continues reading where it stopped, and no run depends on the yard being up.
"""

from __future__ import annotations

TYPE_CHECKING = False  # every training script imports this; typing or dataclasses would cost it 10 ms
if TYPE_CHECKING:
    from pathlib import Path


class HomeFolder:
    SOCKET, NOTIFY_SOCKET = "yard.sock", "bell.sock"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.socket = root / self.SOCKET  # the unix socket of the yard's HTTP API
        self.notify_socket = root / self.NOTIFY_SOCKET  # on which agents report that a run's folder has changed
        self.yard_lock = root / "yard.lock"  # locked by the yard while it lives; contains its process id
        self.yard_log = root / "yard.log"
        self.start_failure = root / "yard.failure.json"  # the error of a yard that could not start
        self.database = root / "yard.db"
        self.token = root / "token"  # the secret that HTTP clients over TCP must send
        self.config = root / "config.toml"  # settings that the user edits
        self.tcp_listener = root / "studio.json"  # the TCP address on which the yard listens again after a restart
        self.runs = root / "runs"
        self.snapshots = root / "snapshots"
        self.environments = root / "environments"
        self.artifacts = root / "artifacts"
        self.services = root / "services"
        self.data = root / "data"  # the default datastore, the data cache and the mount links
        self.node_package = root / "kit"  # the part of Runyard on the PYTHONPATH of training scripts

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)


class RunFolder:
    JOURNAL, WORK, DATA, DATA_RECORD = "journal", "work", "data", "data.json"
    ORDER, STOP, MIRROR, EVENTS = "order.json", "stop.json", "mirror.json", "events.jsonl"

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def order(self) -> Path:
        """The agent's instructions: a WorkOrder as JSON."""
        return self.root / self.ORDER

    @property
    def stop(self) -> Path:
        """Exists once the run is to stop: ``{"reason": "canceled"}``, with an optional ``message``."""
        return self.root / self.STOP

    @property
    def mirror(self) -> Path:
        """Host and folder of a run that executes on another machine; this folder is then a copy."""
        return self.root / self.MIRROR

    @property
    def work(self) -> Path:
        """The copy of the code: the script's working directory, with its `outputs` and `logs`."""
        return self.root / self.WORK

    @property
    def logs(self) -> Path:
        """`20_environment_log.txt`, `70_driver_log.txt`, ...: shown to users as `azureml-logs/...`."""
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
        """Private copies of data, one folder per input."""
        return self.root / self.DATA

    @property
    def data_record(self) -> Path:
        """The cached folders that the run reads, ``{"trees": [...]}``: the cache keeps them while it does."""
        return self.root / self.DATA_RECORD

    @property
    def journal(self) -> Path:
        """Metrics: one set of files per process that logs."""
        return self.root / self.JOURNAL

    @property
    def system(self) -> Path:
        """System metrics of the nodes, in the format of the metrics journal."""
        return self.root / "system"

    @property
    def events(self) -> Path:
        """The agent's event log: one JSON object per line, append-only."""
        return self.root / self.EVENTS

    @property
    def agent_lock(self) -> Path:
        """Locked by the agent while it lives; contains its process id."""
        return self.root / "agent.lock"

    @property
    def agent_log(self) -> Path:
        """Tracebacks of an agent that failed."""
        return self.root / "agent.log"

    @property
    def client_lock(self) -> Path:
        """Locked by the process of an interactive run while it lives."""
        return self.root / "client.lock"

    @property
    def lock_file(self) -> Path:
        """The resolved packages of the environment."""
        return self.root / "environment.lock.txt"

    @property
    def lead(self) -> Path:
        """Address of the lead agent, for the agents of the other nodes: ``{"place": "host:port", "attempt": 1}``."""
        return self.root / "lead.json"

    @property
    def mpirun_log(self) -> Path:
        return self.logs / "60_mpirun_log.txt"

    @property
    def stacks(self) -> Path:
        """Stack dumps of all ranks, taken when the run stalled."""
        return self.work / "logs" / "stalled"

    def node(self, node_rank: int) -> RunFolder:
        """The folder with one node's order, lock and events. Those of the lead node are in the run's own folder."""
        return self if node_rank == 0 else RunFolder(self.root / "nodes" / str(node_rank))
