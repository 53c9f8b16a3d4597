"""The data of a run, gathered from wherever people name it: arguments, inputs, and the run configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException
from runyard.sdk.data.datastore import AbstractDatastore
from runyard.sdk.data.reference import DataReference, use_of

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.training.build_spec import Submission
    from runyard.sdk.training.run_configuration import RunConfiguration
    from runyard.spec.data import DataUse


def note_references(run_config: RunConfiguration, given: Iterable[Any]) -> None:
    """References and datastores stand in the run configuration from then on, under their names."""
    for item in given:
        reference = item.path() if isinstance(item, AbstractDatastore) else item
        if isinstance(reference, DataReference):
            run_config.data_references[reference.data_reference_name] = reference.to_config()


def inputs_of(run_config: RunConfiguration, given: Iterable[Any]) -> tuple[Any, ...]:
    """Each under its name once; what was said last counts."""
    found: dict[str, Any] = {name: _Entry(str(name), entry) for name, entry in run_config.data_references.items()}
    for item in given:
        if hasattr(item, "_data_use"):
            name = item.data_reference_name if isinstance(item, DataReference) else item.name
            _refuse_other_dataset(name, found.get(name), item)
            found[name] = item
    return tuple(found.values())


def data_of(submission: Submission, workspace: Workspace) -> tuple[DataUse, ...]:
    """What its inputs mean in this workspace."""
    return tuple(item._data_use(workspace) for item in submission.inputs)


def _refuse_other_dataset(name: str, before: Any, item: Any) -> None:
    """The script would get the one where it asks for the other."""
    one, other = getattr(before, "dataset", None), getattr(item, "dataset", None)
    if one is not None and other is not None and (one != other or before.mode != item.mode):
        raise UserErrorException(
            f"two inputs have the name {name!r}, and are not the same", hint="give each a name: as_named_input('…')"
        )


class _Entry:
    def __init__(self, name: str, entry: Any) -> None:
        self._use = use_of(name, entry)

    def _data_use(self, workspace: Workspace) -> DataUse:
        return self._use
