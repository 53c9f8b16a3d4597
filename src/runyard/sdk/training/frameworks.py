"""Estimators that install their framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runyard.sdk.core import validation
from runyard.sdk.training.distributed import ParameterServer
from runyard.sdk.training.estimator import Estimator
from runyard.sdk.training.estimator_validation import warn_deprecated
from runyard.sdk.training.framework_versions import (
    HOROVOD_VERSION,
    PYTORCH,
    SCIKIT_LEARN,
    TENSORFLOW,
    KnownFramework,
    select_version,
)
from runyard.sdk.training.parameters import DISTRIBUTION, PARAMETER_SERVERS, EstimatorParameters, signature
from runyard.sdk.training.run_configuration import RunConfiguration
from runyard.spec.environment import Framework

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NOT_FOR_SKLEARN = (
    *DISTRIBUTION,
    *PARAMETER_SERVERS,
    "use_gpu",
    "custom_docker_base_image",
    "source_directory_data_store",
)


class FrameworkEstimator(Estimator):
    """The yard installs the framework, for CPU or GPU according to the machine.

    Takes the parameters of :class:`Estimator`, and ``framework_version``: ``"2.12"`` is the newest 2.12, the default is
    the newest version that is supported.
    """

    FRAMEWORK_NAME: ClassVar[str]
    DEFAULT_VERSION: ClassVar[str]
    _known: ClassVar[KnownFramework]
    _excluded: ClassVar[tuple[str, ...]] = PARAMETER_SERVERS

    @signature(*PARAMETER_SERVERS)
    def __init__(self, source_directory: Any, **parameters: Unpack[EstimatorParameters]) -> None:
        self._framework_version = select_version(self._known, parameters.get("framework_version"))
        super().__init__(source_directory, **parameters)

    @classmethod
    def get_supported_versions(cls) -> list[str]:
        """Return the supported versions, oldest first. Two numbers select the newest version of a series."""
        return list(cls._known.versions)

    @property
    def framework_version(self) -> str:
        return self._framework_version

    def _frameworks(self) -> tuple[Framework, ...]:
        return (self._known.at(self._framework_version),)

    def _communication_libraries(self, config: RunConfiguration) -> tuple[Framework, ...]:
        """Install Horovod together with MPI: a script only has to import it."""
        libraries = super()._communication_libraries(config)
        return (*libraries, Framework("horovod", HOROVOD_VERSION)) if libraries else ()


class PyTorch(FrameworkEstimator):
    """A PyTorch script."""

    FRAMEWORK_NAME = "PyTorch"
    DEFAULT_VERSION = PYTORCH.default
    _known = PYTORCH
    _backends = ("mpi", "gloo", "nccl")

    def _framework_variables(self) -> dict[str, str]:
        return {"NCCL_TREE_THRESHOLD": "0"}


class TensorFlow(FrameworkEstimator):
    """A TensorFlow script. Takes also ``worker_count`` and ``parameter_server_count`` for the backend ``"ps"``."""

    FRAMEWORK_NAME = "TensorFlow"
    DEFAULT_VERSION = TENSORFLOW.default
    _known = TENSORFLOW
    _backends = ("mpi", "ps")
    _excluded = ()

    @signature()
    def __init__(self, source_directory: Any, **parameters: Unpack[EstimatorParameters]) -> None:
        servers = ParameterServer(parameters.get("worker_count", 1), parameters.get("parameter_server_count", 1))
        counts = {"worker_count": servers.worker_count, "parameter_server_count": servers.parameter_server_count}
        for name, count in counts.items():
            if count != 1:
                warn_deprecated(name, "distributed_training=ParameterServer(worker_count, parameter_server_count)")
        if set(counts.values()) != {1} and parameters.get("distributed_backend") is None:
            validation.log.warning(
                "worker_count and parameter_server_count are ignored without distributed_backend='ps'"
            )
        super().__init__(source_directory, **parameters)


class SKLearn(FrameworkEstimator):
    """A scikit-learn script: one process, no GPU."""

    FRAMEWORK_NAME = "SKLearn"
    DEFAULT_VERSION = SCIKIT_LEARN.default
    _known = SCIKIT_LEARN
    _backends = ()
    _excluded = _NOT_FOR_SKLEARN

    @signature(*_NOT_FOR_SKLEARN)
    def __init__(self, source_directory: Any, **parameters: Unpack[EstimatorParameters]) -> None:
        super().__init__(source_directory, **parameters)
