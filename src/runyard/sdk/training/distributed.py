"""Distribution of a run over processes and nodes, in the two notations of the SDK v1."""

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
    """Base of the older notation, whose classes list the estimators that support them."""

    _ESTIMATORS: tuple[str, ...] = ()

    def validate(self, estimator_name: str) -> None:
        if estimator_name not in self._ESTIMATORS:
            raise TrainingException(
                f"{type(self).__name__} does not work with {estimator_name}",
                hint=f"it works with {', '.join(self._ESTIMATORS)}",
            )


class Mpi(_Distribution):
    """Ranks started with MPI, ``process_count_per_node`` on each node."""

    _ESTIMATORS = ("Chainer", "Estimator", "PyTorch", "TensorFlow")

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = validation.count("process_count_per_node", process_count_per_node)

    def __str__(self) -> str:
        return "mpi"


class ParameterServer(_Distribution):
    """TensorFlow workers and parameter servers. Without servers, the workers mirror each other.

    Args:
        worker_count: Number of workers.
        parameter_server_count: Number of parameter servers.
        chief: Name the first worker ``chief``, as TensorFlow 2's strategies require.
        evaluator: Add an ``evaluator`` task, which is not part of the cluster.
    """

    _ESTIMATORS = ("TensorFlow",)

    def __init__(
        self,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        *,
        chief: bool = False,
        evaluator: bool = False,
    ) -> None:
        self.worker_count = validation.count("worker_count", worker_count)
        self.parameter_server_count = validation.count("parameter_server_count", parameter_server_count, minimum=0)
        self.chief = validation.flag("chief", chief)
        self.evaluator = validation.flag("evaluator", evaluator)

    def __str__(self) -> str:
        return "ps"


class Nccl(_Distribution):
    """PyTorch processes that communicate with NCCL (GPUs)."""

    _ESTIMATORS = ("PyTorch",)

    def __str__(self) -> str:
        return "nccl"


class Gloo(_Distribution):
    """PyTorch processes that communicate with Gloo (CPUs)."""

    _ESTIMATORS = ("PyTorch",)

    def __str__(self) -> str:
        return "gloo"


class MpiConfiguration(Section):
    """Ranks started with MPI, for ``ScriptRunConfig(distributed_job_config=...)``."""

    _types = {"process_count_per_node": (int,), "node_count": (int,)}

    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = validation.count(
            "process_count_per_node", process_count_per_node, error=RunConfigurationException
        )
        self.node_count = validation.count("node_count", node_count, error=RunConfigurationException)
        self._freeze_names()


class TensorflowConfiguration(Section):
    """TensorFlow workers and parameter servers, for ``ScriptRunConfig(distributed_job_config=...)``."""

    _types = {"worker_count": (int,), "parameter_server_count": (int,), "chief": (bool,), "evaluator": (bool,)}

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
            "parameter_server_count", parameter_server_count, minimum=0, error=RunConfigurationException
        )
        self.chief = validation.flag("chief", chief, error=RunConfigurationException)
        self.evaluator = validation.flag("evaluator", evaluator, error=RunConfigurationException)
        self._freeze_names()


class PyTorchConfiguration(Section):
    """PyTorch processes; ``process_count`` counts those of all nodes. The default is one per node."""

    _types = {"communication_backend": (str,), "process_count": (int, type(None)), "node_count": (int,)}

    def __init__(
        self, communication_backend: str = "Nccl", process_count: Optional[int] = None, node_count: int = 1
    ) -> None:
        backend = communication_backend.lower() if isinstance(communication_backend, str) else communication_backend
        if backend not in ("nccl", "gloo"):
            raise validation.invalid(
                "communication_backend", communication_backend, "'Nccl' or 'Gloo'", error=RunConfigurationException
            )
        self.communication_backend = backend
        self.process_count = (
            None
            if process_count is None
            else validation.count("process_count", process_count, error=RunConfigurationException)
        )
        self.node_count = validation.count("node_count", node_count, error=RunConfigurationException)
        self._freeze_names()


def write(run_config: RunConfiguration, distribution: Any) -> None:
    """Store a distribution in the run configuration, under the names of the SDK v1."""
    if isinstance(distribution, MpiConfiguration):
        _set_names(run_config, "Python", "IntelMpi")
        run_config.mpi = distribution
    elif isinstance(distribution, TensorflowConfiguration):
        _set_names(run_config, "TensorFlow", "ParameterServer")
        run_config.tensorflow = distribution
    elif isinstance(distribution, PyTorchConfiguration):
        _set_names(run_config, "PyTorch", distribution.communication_backend)
        run_config.pytorch = distribution
    elif isinstance(distribution, Mpi):
        _set_names(run_config, "python", "Mpi")
        run_config.mpi.process_count_per_node = distribution.process_count_per_node
    elif isinstance(distribution, ParameterServer):
        _set_names(run_config, "tensorflow", "ParameterServer")
        run_config.tensorflow.worker_count = distribution.worker_count
        run_config.tensorflow.parameter_server_count = distribution.parameter_server_count
        run_config.tensorflow.chief = distribution.chief
        run_config.tensorflow.evaluator = distribution.evaluator
    else:
        _set_names(run_config, "pytorch", type(distribution).__name__)
        run_config.pytorch.communication_backend = str(distribution)


class Gang(NamedTuple):
    """The launcher of a run, and its number of nodes and processes."""

    launch: Launch
    nodes: int
    processes_per_node: int


def build_gang(run_config: RunConfiguration) -> Gang:
    """Select the launcher by the communicator of the run configuration."""
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
            f"node_count={nodes} needs a communicator that connects the processes; it is {run_config.communicator!r}",
            hint="give a distributed_job_config: MpiConfiguration, TensorflowConfiguration or PyTorchConfiguration",
        )
    return Gang(launch.Single(), 1, 1)


def _parameter_servers(tensorflow: TensorflowConfiguration, nodes: int) -> Gang:
    workers, servers = tensorflow.worker_count, tensorflow.parameter_server_count
    tasks = workers + servers + int(tensorflow.evaluator)
    if nodes > tasks:
        raise TrainingException(
            f"{nodes} nodes for {tasks} tasks ({workers} workers, {servers} parameter servers): some would be idle",
            hint=f"node_count={tasks} or less, or more workers",
        )
    kind = launch.ParameterServer(workers, servers, tensorflow.chief, tensorflow.evaluator)
    return Gang(kind, nodes, -(-tasks // nodes))


def _processes_per_node(total: Optional[int], nodes: int) -> int:
    """Divide ``process_count``, which counts all processes of the run, as in the SDK v1."""
    if total is None:
        return 1
    if total % nodes:
        raise RunConfigurationException(
            f"process_count={total} cannot be divided evenly among node_count={nodes}",
            hint=f"use a multiple of {nodes}: process_count counts the processes of all nodes",
        )
    return total // nodes


def _set_names(run_config: RunConfiguration, framework: str, communicator: str) -> None:
    run_config.framework = framework
    run_config.communicator = communicator
