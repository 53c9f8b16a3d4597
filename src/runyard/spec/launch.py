"""How the processes of a run are started. Pure values: what they become on the nodes is made in `runyard.launch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Single:
    """One process of the entry script."""

    kind: str = "single"


@dataclass(frozen=True)
class Mpi:
    """`nodes * processes_per_node` ranks under one Open MPI `mpirun`; Horovod and mpi4py ride on it."""

    kind: str = "mpi"


@dataclass(frozen=True)
class ParameterServer:
    """TensorFlow's cluster: every task finds the others in TF_CONFIG. The run ends with its workers."""

    workers: int = 1
    servers: int = 1
    chief: bool = False  # the first worker is called chief, as TensorFlow 2's own strategies want it
    evaluator: bool = False  # one more task, which stays out of the cluster specification
    kind: str = "parameter-server"


@dataclass(frozen=True)
class TorchDistributed:
    """torch.distributed's env:// variables for `nodes * processes_per_node` processes."""

    backend: str = "gloo"
    kind: str = "torch"


Launch = Union[Single, Mpi, ParameterServer, TorchDistributed]

KINDS: dict[str, type[Launch]] = {kind().kind: kind for kind in (Single, Mpi, ParameterServer, TorchDistributed)}
