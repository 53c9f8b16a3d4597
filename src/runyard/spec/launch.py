"""Launch methods for the processes of a run. `runyard.launch` turns them into commands and variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Single:
    """One process of the entry script."""

    kind: str = "single"


@dataclass(frozen=True)
class Mpi:
    """`nodes * processes_per_node` ranks under one Open MPI `mpirun`, for Horovod and mpi4py."""

    kind: str = "mpi"


@dataclass(frozen=True)
class ParameterServer:
    """A TensorFlow cluster that is described to every task by TF_CONFIG. The run ends with its workers."""

    workers: int = 1
    servers: int = 1
    chief: bool = False  # name the first worker "chief", as TensorFlow 2 strategies expect
    evaluator: bool = False  # one more task, which is not part of the cluster specification
    kind: str = "parameter-server"


@dataclass(frozen=True)
class TorchDistributed:
    """torch.distributed's env:// variables for `nodes * processes_per_node` processes."""

    backend: str = "gloo"
    kind: str = "torch"


Launch = Union[Single, Mpi, ParameterServer, TorchDistributed]

KINDS: dict[str, type[Launch]] = {kind().kind: kind for kind in (Single, Mpi, ParameterServer, TorchDistributed)}
