"""How the processes of a run find each other: what the two notations of the SDK v1 say, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import RunConfigurationException, TrainingException
from runyard.sdk import checks
from runyard.sdk.sections import Section
from runyard.spec.launch import Launch, Single

if TYPE_CHECKING:
    from runyard.sdk.run_configuration import RunConfiguration

MPI_COMMUNICATORS = ("mpi", "intelmpi", "openmpi")


class Mpi:
    """Ranks started by MPI, ``process_count_per_node`` on each node."""

    def __init__(self, process_count_per_node: int = 1) -> None:
        self.process_count_per_node = checks.count("process_count_per_node", process_count_per_node)

    def __str__(self) -> str:
        return "mpi"


class ParameterServer:
    """TensorFlow workers and parameter servers."""

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = checks.count("worker_count", worker_count)
        self.parameter_server_count = checks.count("parameter_server_count", parameter_server_count)

    def __str__(self) -> str:
        return "ps"


class Nccl:
    """PyTorch processes that talk over NCCL (GPUs)."""

    def __str__(self) -> str:
        return "nccl"


class Gloo:
    """PyTorch processes that talk over Gloo (CPUs)."""

    def __str__(self) -> str:
        return "gloo"


class MpiConfiguration(Section):
    _takes = {"process_count_per_node": (int,), "node_count": (int,)}

    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = checks.count(
            "process_count_per_node", process_count_per_node, error=RunConfigurationException
        )
        self.node_count = checks.count("node_count", node_count, error=RunConfigurationException)
        self._complete()


class TensorflowConfiguration(Section):
    _takes = {"worker_count": (int,), "parameter_server_count": (int,)}

    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = checks.count("worker_count", worker_count, error=RunConfigurationException)
        self.parameter_server_count = checks.count(
            "parameter_server_count", parameter_server_count, error=RunConfigurationException
        )
        self._complete()


class PyTorchConfiguration(Section):
    _takes = {"communication_backend": (str,), "process_count": (int, type(None)), "node_count": (int,)}

    def __init__(
        self, communication_backend: str = "Nccl", process_count: Optional[int] = None, node_count: int = 1
    ) -> None:
        backend = communication_backend.lower() if isinstance(communication_backend, str) else communication_backend
        if backend not in ("nccl", "gloo"):
            raise checks.wrong(
                "communication_backend", communication_backend, "'Nccl' or 'Gloo'", error=RunConfigurationException
            )
        self.communication_backend = backend
        self.process_count = (
            None
            if process_count is None
            else checks.count("process_count", process_count, error=RunConfigurationException)
        )
        self.node_count = checks.count("node_count", node_count, error=RunConfigurationException)
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
    else:
        _name(run_config, "pytorch", type(distribution).__name__)
        run_config.pytorch.communication_backend = str(distribution)


def launch_of(run_config: RunConfiguration) -> Launch:
    """How the processes of the run are started; the only place that knows which ways there are."""
    processes = process_count(run_config)
    if processes > 1:
        raise TrainingException(
            f"distributed runs are not available in this version; this one asks for {processes} processes",
            hint="leave node_count and process_count_per_node at 1, without parameter servers",
            processes=processes,
        )
    return Single()


def process_count(run_config: RunConfiguration) -> int:
    communicator = run_config.communicator.lower()
    if communicator in MPI_COMMUNICATORS:
        return run_config.node_count * run_config.mpi.process_count_per_node
    if communicator == "parameterserver":
        return run_config.tensorflow.worker_count + run_config.tensorflow.parameter_server_count
    if communicator in ("nccl", "gloo"):
        return max(run_config.node_count, run_config.pytorch.process_count or 1)
    return run_config.node_count


def _name(run_config: RunConfiguration, framework: str, communicator: str) -> None:
    run_config.framework = framework
    run_config.communicator = communicator
