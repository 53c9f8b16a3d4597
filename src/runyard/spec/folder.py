"""Names of the files that several processes share: in the yard's home folder, and in the folder of one run.

A run's folder is the source of truth. The agent and the script write to it first and notify the yard afterwards, so a
yard that was down continues reading where it stopped, and no run depends on the yard being up.
"""

from __future__ import annotations

TYPE_CHECKING = False  # every training script imports this; typing or dataclasses would cost it 10 ms
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


class _Entry:
    """A path below ``root`` of the object that it is read from."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: Any, owner: object = None) -> Path:
        path: Path = folder.root / self._name
        return path


class HomeFolder:
    SOCKET, NOTIFY_SOCKET = "yard.sock", "bell.sock"

    socket = _Entry(SOCKET)  # the unix socket of the yard's HTTP API
    notify_socket = _Entry(NOTIFY_SOCKET)  # on which agents report that a run's folder has changed
    yard_lock = _Entry("yard.lock")  # locked by the yard while it lives; contains its process id
    yard_log = _Entry("yard.log")
    start_failure = _Entry("yard.failure.json")  # the error of a yard that could not start
    database = _Entry("yard.db")
    created = _Entry("home.json")  # written with the database: if that is missing later, it was lost
    token = _Entry("token")  # the secret that HTTP clients over TCP must send
    secrets = _Entry("secrets.json")  # the named secrets, encrypted
    secrets_key = _Entry("secrets.key")  # their key, unless it is configured to be elsewhere
    deliveries = _Entry("deliveries")  # variables for agents that a batch system starts; each file is deleted when read
    config = _Entry("config.toml")  # settings that the user edits
    tcp_listener = _Entry("studio.json")  # the TCP address on which the yard listens again after a restart
    runs = _Entry("runs")
    snapshots = _Entry("snapshots")
    environments = _Entry("environments")
    artifacts = _Entry("artifacts")
    services = _Entry("services")
    data = _Entry("data")  # the default datastore, the data cache and the mount links
    mlflow_page = _Entry("mlflow-ui")  # a package `mlflow`, of which only the web page is used
    node_package = _Entry("kit")  # the part of Runyard on the PYTHONPATH of training scripts

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)


class RunFolder:
    JOURNAL, WORK, DATA, DATA_RECORD = "journal", "work", "data", "data.json"
    ORDER, STOP, MIRROR, EVENTS = "order.json", "stop.json", "mirror.json", "events.jsonl"

    order = _Entry(ORDER)  # the agent's instructions: a WorkOrder as JSON
    description = _Entry("run.json")  # the run as recorded in the database, to restore it without one
    stop = _Entry(STOP)  # exists once the run is to stop: {"reason": "canceled"}, with an optional "message"
    mirror = _Entry(MIRROR)  # host and folder of a run on another machine; this folder is then a copy
    events = _Entry(EVENTS)  # the agent's event log: one JSON object per line, append-only
    work = _Entry(WORK)  # the copy of the code: the script's working directory, with its `outputs` and `logs`
    stacks = _Entry("work/logs/stalled")  # stack dumps of all ranks, taken when the run stalled
    logs = _Entry("azureml-logs")
    environment_log = _Entry("azureml-logs/20_environment_log.txt")
    data_log = _Entry("azureml-logs/30_data_log.txt")
    mpirun_log = _Entry("azureml-logs/60_mpirun_log.txt")
    data = _Entry(DATA)  # private copies of data, one folder per input
    data_record = _Entry(DATA_RECORD)  # the cached folders that the run reads, {"trees": [...]}: not to be evicted
    journal = _Entry(JOURNAL)  # metrics: one set of files per process that logs
    system = _Entry("system")  # system metrics of the nodes, in the format of the metrics journal
    agent_lock = _Entry("agent.lock")  # locked by the agent while it lives; contains its process id
    agent_log = _Entry("agent.log")  # tracebacks of an agent that failed
    client_lock = _Entry("client.lock")  # locked by the process of an interactive run while it lives
    lock_file = _Entry("environment.lock.txt")  # the resolved packages of the environment
    sealed_values = _Entry("values.sealed")  # values that look like secrets, encrypted; masked in the specification
    started = _Entry("started.json")  # of a sweep: its start in seconds since boot, for its time limit
    lead = _Entry("lead.json")  # address of the lead agent: {"place": "host:port", "attempt": 1}
    lost = _Entry("lost.json")  # in the folder of a node whose agent died: {"attempt": 1, "evidence": "exit code 137"}

    def __init__(self, root: Path) -> None:
        self.root = root

    def driver_log(self, suffix: str = "") -> Path:
        return self.logs / f"70_driver_log{suffix}.txt"

    def node(self, node_rank: int) -> RunFolder:
        """The folder with one node's order, lock and events. Those of the lead node are in the run's own folder."""
        return self if node_rank == 0 else RunFolder(self.root / "nodes" / str(node_rank))
