"""Datasets as they are named on the command line and in job files."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException

_KEYS = ("dataset", "mode")
_MODES = ("mount", "download", "direct")


def name_and_version(text: str) -> dict[str, Any]:
    """``mnist:2`` is a version of a name, anything else a name."""
    before, colon, version = text.rpartition(":")
    return {"name": before, "version": int(version)} if colon and version.isdigit() else {"name": text}


def inputs_of(where: str, given: dict[str, Any]) -> list[Any]:
    """``{'mnist': 'mnist:2', 'words': {'dataset': 'words', 'mode': 'download'}}`` as inputs of a run."""
    return [_input(f"{where}: {name}", name, said) for name, said in given.items()]


def _input(where: str, name: str, said: Any) -> Any:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.dataset import Dataset
    from runyard.spec.dataset import FILE

    asked = said if isinstance(said, dict) else {"dataset": said}
    unknown = [str(key) for key in asked if key not in _KEYS]
    if unknown or not asked.get("dataset"):
        what = f"there is no key {', '.join(map(repr, unknown))}" if unknown else "it names no dataset"
        raise UserErrorException(f"{where}: {what}", hint=f"{name}: {{dataset: NAME:VERSION, mode: download}}")
    dataset = Dataset.get_by_name(Workspace(), **name_and_version(str(asked["dataset"])))
    made = dataset.as_named_input(name)
    mode = asked.get("mode") or ("mount" if dataset._definition.kind == FILE else "direct")
    if mode not in _MODES:
        raise UserErrorException(f"{where}: there is no mode {mode!r}", hint=f"modes: {', '.join(_MODES)}")
    return {"mount": made.as_mount, "download": made.as_download, "direct": lambda: made}[mode]()
