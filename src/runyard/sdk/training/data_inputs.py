"""Data inputs of a run, collected from its arguments, inputs and run configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.data.datastore import AbstractDatastore
from runyard.sdk.data.reference import DataReference, to_data_use

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.training.build_spec import Submission
    from runyard.sdk.training.run_configuration import RunConfiguration
    from runyard.spec.data import DataUse


def add_references(run_config: RunConfiguration, items: Iterable[Any]) -> None:
    """Add the data references and datastores among the items to the run configuration."""
    for item in items:
        reference = item.path() if isinstance(item, AbstractDatastore) else item
        if isinstance(reference, DataReference):
            run_config.data_references[reference.data_reference_name] = reference.to_config()


def collect_inputs(run_config: RunConfiguration, items: Iterable[Any]) -> tuple[Any, ...]:
    """Return each input once by name; a later one replaces an earlier one."""
    inputs: dict[str, Any] = {
        name: _ConfigEntry(str(name), entry) for name, entry in run_config.data_references.items()
    }
    for item in items:
        if hasattr(item, "_data_use"):
            name = item.data_reference_name if isinstance(item, DataReference) else item.name
            _check_same_dataset(name, inputs.get(name), item)
            inputs[name] = item
    return tuple(inputs.values())


def data_uses(submission: Submission, workspace: Workspace) -> tuple[DataUse, ...]:
    """Resolve the inputs in a workspace."""
    return tuple(item._data_use(workspace) for item in submission.inputs)


def _check_same_dataset(name: str, earlier: Any, item: Any) -> None:
    """Refuse different datasets under one name: the script would read the wrong one."""
    first, second = getattr(earlier, "dataset", None), getattr(item, "dataset", None)
    if first is not None and second is not None and (first != second or earlier.mode != item.mode):
        raise UserErrorException(
            f"two different inputs have the name {name!r}", hint="give each a name: as_named_input('…')"
        )


class _ConfigEntry:
    def __init__(self, name: str, entry: Any) -> None:
        self._use = to_data_use(name, entry)

    def _data_use(self, workspace: Workspace) -> DataUse:
        return self._use
