"""The target kind AmlCompute: nodes simulated on the yard's machine, or a Slurm partition that `config.toml` names.

[amlcompute]
engine = "slurm"
partition = "main"

[amlcompute.vm_size.STANDARD_NC6]      # for clusters of that size
partition = "gpu"

[amlcompute.name.gpu-cluster]          # for one cluster; takes precedence over its size
partition = "gpu"
options = ["--exclusive"]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runyard.compute.base import Compute
from runyard.compute.kind import Configuration, TargetDeps, TargetKind
from runyard.compute.scheduling.misconfigured import Misconfigured
from runyard.compute.scheduling.queue import Queue
from runyard.compute.scheduling.whole_nodes import WholeNodes
from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.compute.slurm.target import check_partition, create_partition
from runyard.errors import ComputeTargetException
from runyard.spec.folder import HomeFolder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENGINES = ("local", "slurm")


class AmlComputeKind(TargetKind):
    title = "simulated nodes on this machine"
    resizable = True

    def create(self, name: str, configuration: Configuration, deps: TargetDeps) -> tuple[Compute, Queue]:
        max_nodes = int(configuration["max_nodes"])
        try:
            options = partition_options(deps.home, name, str(configuration.get("vm_size") or ""))
        except ComputeTargetException as error:
            return deps.local, Queue(Misconfigured(error))
        if options is None:
            return deps.local, Queue(WholeNodes(name, max_nodes))
        return create_partition(name, options, deps, max_nodes)

    def check(self, name: str, configuration: Configuration, deps: TargetDeps) -> Configuration:
        options = partition_options(deps.home, name, str(configuration.get("vm_size") or ""))
        if options is not None:
            check_partition(name, options, deps)
        return configuration


def partition_options(home: Path, name: str, vm_size: str) -> SlurmOptions | None:
    """The partition of a cluster; None if its nodes are simulated. Raises for an invalid configuration file."""
    path = HomeFolder(home).config
    try:
        section = tomllib.loads(path.read_text(encoding="utf-8")).get("amlcompute", {})
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ComputeTargetException(f"cannot read {path}: {error}", hint="it must be TOML") from None
    if not isinstance(section, Mapping):
        raise ComputeTargetException(f"{path}: amlcompute is not a table", hint='begin it with "[amlcompute]"')
    settings = {key: value for key, value in section.items() if key not in ("vm_size", "name")}
    for selector, key in (("vm_size", vm_size.upper()), ("name", name.upper())):
        tables = {str(label).upper(): table for label, table in _table(section, selector, path).items()}
        settings.update(_table(tables, key, path))
    engine = settings.pop("engine", "local")
    if engine not in _ENGINES:
        raise ComputeTargetException(
            f"{path}: amlcompute has no engine {engine!r}", hint=f"engines: {', '.join(_ENGINES)}"
        )
    return read_options(name, settings) if engine == "slurm" else None


def _table(tables: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    table = tables.get(key, {})
    if not isinstance(table, Mapping):
        raise ComputeTargetException(f"{path}: amlcompute: {key} is not a table")
    return table
