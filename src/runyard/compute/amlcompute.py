"""Where an AmlCompute really is: nodes played on this machine, unless the home's `config.toml` names a partition.

[amlcompute]
engine = "slurm"
partition = "main"

[amlcompute.vm_size.STANDARD_NC6]      # clusters of that size; a name is more particular still
partition = "gpu"

[amlcompute.name.gpu-cluster]
partition = "gpu"
options = ["--exclusive"]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runyard.compute.slurm.options import SlurmOptions, read_options
from runyard.errors import ComputeTargetException
from runyard.spec.folder import HomeFolder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENGINES = ("local", "slurm")


def partition_of(home: Path, name: str, vm_size: str) -> SlurmOptions | None:
    """None: played here. Raises for a configuration that nobody can have meant."""
    path = HomeFolder(home).config
    try:
        asked = tomllib.loads(path.read_text(encoding="utf-8")).get("amlcompute", {})
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ComputeTargetException(f"{path} cannot be read: {error}", hint="it is in TOML") from None
    if not isinstance(asked, Mapping):
        raise ComputeTargetException(f"{path}: amlcompute is not a table", hint='begin it with "[amlcompute]"')
    chosen = {key: value for key, value in asked.items() if key not in ("vm_size", "name")}
    for particular, key in (("vm_size", vm_size.upper()), ("name", name.upper())):
        tables = {str(word).upper(): table for word, table in _table(asked, particular, path).items()}
        chosen.update(_table(tables, key, path))
    engine = chosen.pop("engine", "local")
    if engine not in _ENGINES:
        raise ComputeTargetException(
            f"{path}: amlcompute has no engine {engine!r}", hint=f"one of: {', '.join(_ENGINES)}"
        )
    return read_options(name, chosen) if engine == "slurm" else None


def _table(tables: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    found = tables.get(key, {})
    if not isinstance(found, Mapping):
        raise ComputeTargetException(f"{path}: {key} under amlcompute is not a table")
    return found
