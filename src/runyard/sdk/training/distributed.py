"""How the processes of a run find each other: what the two notations of the SDK v1 say, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from runyard.errors import RunConfigurationException, TrainingException
from runyard.sdk.core import validation
from runyard.sdk.core.sections import Section
from runyard.spec import launch
from runyard.spec.launch import Launch

if TYPE_CHECKING:
    from runyard.sdk.training.run_configuration import RunConfiguration

MPI_COMMUNICATORS = ("mpi", "intelmpi", "openmpi", "horovod")
COMMUNICATORS = ("None", "Mpi", "IntelMpi", "OpenMpi", "Horovod", "ParameterServer", "Nccl", "Gloo")


class _Distribution:
    """One of the older notations, which say of themselves for which estimators they are."""

    _FOR: tuple[str, ...] = ()

    def validate(self, estimator_name: str) -> None:
        if estimator_name not in self._FOR:
            raise TrainingException(
                f"{type(self).__name__} does not work with {estimator_name}", hint=f"it is for {', '.join(self._FOR)}"
            )


class Mpi(_Distribution):
    """Ranks started by MPI, ``process_count_per_node`` on each node."""

    _FOR = ("Chainer", "Estimator", "PyTorch", "TensorFlow")

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = validation.count("process_count_per_node", process_count_per_node)

    def __str__(self) -> str:
        return "mpi"


class ParameterServer(_Distribution):
    """TensorFlow workers and parameter servers.

    ``chief`` calls the first worker by that name and ``evaluator`` adds a task that stays out of the cluster, as
    TensorFlow 2's own strategies want them; without servers the workers mirror each other.
    """

    _FOR = ("TensorFlow",)

    def __init__(
        self,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        *,
        chief: bool = False,
        evaluator: bool = False,
    ) -> None:
        self.worker_count = validation.count("worker_count", worker_count)
        self.parameter_server_count = validation.count("parameter_server_count", parameter_server_count, least=0)
        self.chief = validation.flag("chief", chief)
        self.evaluator = validation.flag("evaluator", evaluator)

    def __str__(self) -> str:
        return "ps"


class Nccl(_Distribution):
    """PyTorch processes that talk over NCCL (GPUs)."""

    _FOR = ("PyTorch",)

    def __str__(self) -> str:
        return "nccl"


class Gloo(_Distribution):
    """PyTorch processes that talk over Gloo (CPUs)."""

    _FOR = ("PyTorch",)

    def __str__(self) -> str:
        return "gloo"


class MpiConfiguration(Section):
    _takes = {"process_count_per_node": (int,), "node_count": (int,)}

    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = validation.count(
            "process_count_per_node", process_count_per_node, error=RunConfigurationException
        )
        self.node_count = validation.count("node_count", node_count, error=RunConfigurationException)
        self._complete()


class TensorflowConfiguration(Section):
    _takes = {"worker_count": (int,), "parameter_server_count": (int,), "chief": (bool,), "evaluator": (bool,)}

    def __init__(
        self,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        *,
        chief: bool = False,
        evaluator: bool = False,
    ) -> None:
        self.worker_count = validation.count("worker_count", worker_count, error=RunConfigurationException)
        self.parameter_server_count = validation.count(
            "parameter_server_count", parameter_server_count, least=0, error=RunConfigurationException
        )
        self.chief = validation.flag("chief", chief, error=RunConfigurationException)
        self.evaluator = validation.flag("evaluator", evaluator, error=RunConfigurationException)
        self._complete()


class PyTorchConfiguration(Section):
    _takes = {"communication_backend": (str,), "process_count": (int, type(None)), "node_count": (int,)}

    def __init__(
        self, communication_backend: str = "Nccl", process_count: Optional[int] = None, node_count: int = 1
    ) -> None:
        backend = communication_backend.lower() if isinstance(communication_backend, str) else communication_backend
        if backend not in ("nccl", "gloo"):
            raise validation.wrong(
                "communication_backend", communication_backend, "'Nccl' or 'Gloo'", error=RunConfigurationException
            )
        self.communication_backend = backend
        self.process_count = (
            None
            if process_count is None
            else validation.count("process_count", process_count, error=RunConfigurationException)
        )
        self.node_count = validation.count("node_count", node_count, error=RunConfigurationException)
        self._complete()


def write(run_config: RunConfiguration, distribution: Any) -> None:
    """Stores one of the values above in the run configuration, under the names that the SDK v1 gave them."""
    if isinstance(distribution, MpiConfiguration):
        _name(run_config, "Python", "IntelMpi")
        run_config.mpi = distribution
    elif isinstance(distribution, TensorflowConfiguration):
        _name(run_config, "TensorFlow", "ParameterServer")
        run_config.tensorflow = distribution
    elif isinstance(distribution, PyTorchConfiguration):
        _name(run_config, "PyTorch", distribution.communication_backend)
        run_config.pytorch = distribution
    elif isinstance(distribution, Mpi):
        _name(run_config, "python", "Mpi")
        run_config.mpi.process_count_per_node = distribution.process_count_per_node
    elif isinstance(distribution, ParameterServer):
        _name(run_config, "tensorflow", "ParameterServer")
        run_config.tensorflow.worker_count = distribution.worker_count
        run_config.tensorflow.parameter_server_count = distribution.parameter_server_count
        run_config.tensorflow.chief = distribution.chief
        run_config.tensorflow.evaluator = distribution.evaluator
    else:
        _name(run_config, "pytorch", type(distribution).__name__)
        run_config.pytorch.communication_backend = str(distribution)


class Gang(NamedTuple):
    """How the processes of a run are started, and how many of them where."""

    launch: Launch
    nodes: int
    processes_per_node: int


def gang_of(run_config: RunConfiguration) -> Gang:
    """The only place that knows which ways there are."""
    communicator, nodes = run_config.communicator.lower(), run_config.node_count
    validation.count("node_count", nodes, error=RunConfigurationException)
    if communicator in MPI_COMMUNICATORS:
        return Gang(launch.Mpi(), nodes, run_config.mpi.process_count_per_node)
    if communicator == "parameterserver":
        return _parameter_servers(run_config.tensorflow, nodes)
    if communicator in ("nccl", "gloo"):
        return Gang(
            launch.TorchDistributed(communicator), nodes, _processes_per_node(run_config.pytorch.process_count, nodes)
        )
    if nodes > 1:
        raise RunConfigurationException(
            f"node_count={nodes} needs a way for the processes to find each other; the communicator is "
            f"{run_config.communicator!r}",
            hint="give a distributed_job_config: MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration",
        )
    return Gang(launch.Single(), 1, 1)


def _parameter_servers(tensorflow: TensorflowConfiguration, nodes: int) -> Gang:
    workers, servers = tensorflow.worker_count, tensorflow.parameter_server_count
    tasks = workers + servers + int(tensorflow.evaluator)
    if nodes > tasks:
        raise TrainingException(
            f"{nodes} nodes for {tasks} tasks ({workers} workers, {servers} parameter servers): some would stay empty",
            hint=f"node_count={tasks} or less, or more workers",
        )
    kind = launch.ParameterServer(workers, servers, tensorflow.chief, tensorflow.evaluator)
    return Gang(kind, nodes, -(-tasks // nodes))


def _processes_per_node(total: Optional[int], nodes: int) -> int:
    """``process_count`` counts all processes of the run, as the SDK v1 has it."""
    if total is None:
        return 1
    if total % nodes:
        raise RunConfigurationException(
            f"process_count={total} cannot be dealt evenly over node_count={nodes}",
            hint=f"choose a multiple of {nodes}: process_count counts the processes of all nodes together",
        )
    return total // nodes


def _name(run_config: RunConfiguration, framework: str, communicator: str) -> None:
    run_config.framework = framework
    run_config.communicator = communicator
