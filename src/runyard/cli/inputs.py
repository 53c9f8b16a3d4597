"""Parses dataset inputs of the command line and of job files."""

from __future__ import annotations

from typing import Any

from runyard.errors import UserErrorException

_KEYS = ("dataset", "mode")
_MODES = ("mount", "download", "direct")


def name_and_version(text: str) -> dict[str, Any]:
    """``mnist:2`` is a name with a version, anything else a name."""
    before, colon, version = text.rpartition(":")
    return {"name": before, "version": int(version)} if colon and version.isdigit() else {"name": text}


def parse_inputs(where: str, inputs: dict[str, Any]) -> list[Any]:
    """``{'mnist': 'mnist:2', 'words': {'dataset': 'words', 'mode': 'download'}}`` as inputs of a run."""
    return [_input(f"{where}: {name}", name, value) for name, value in inputs.items()]


def _input(where: str, name: str, value: Any) -> Any:
    from runyard.sdk.core.workspace import Workspace
    from runyard.sdk.data.dataset import Dataset
    from runyard.spec.dataset import FILE

    settings = value if isinstance(value, dict) else {"dataset": value}
    unknown = [str(key) for key in settings if key not in _KEYS]
    if unknown or not settings.get("dataset"):
        problem = f"unknown key {', '.join(map(repr, unknown))}" if unknown else "no dataset specified"
        raise UserErrorException(f"{where}: {problem}", hint=f"{name}: {{dataset: NAME:VERSION, mode: download}}")
    dataset = Dataset.get_by_name(Workspace(), **name_and_version(str(settings["dataset"])))
    named_input = dataset.as_named_input(name)
    mode = settings.get("mode") or ("mount" if dataset._definition.kind == FILE else "direct")
    if mode not in _MODES:
        raise UserErrorException(f"{where}: unknown mode {mode!r}", hint=f"available modes: {', '.join(_MODES)}")
    return {"mount": named_input.as_mount, "download": named_input.as_download, "direct": lambda: named_input}[mode]()
