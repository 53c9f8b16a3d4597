"""A model, and two of them side by side, in lines of text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from runyard.cli.formatting import count_text, size_text, value_text

_FILES_SHOWN = 10


def facts(page: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known, by what it is called; what is not known is left out."""
    model, details = page["model"], page["model"]["details"]
    files = page["files"]
    found = [
        ("description", model["description"] or ""),
        ("framework", " ".join(filter(None, (model["framework"], model["framework_version"])))),
        ("stage", model["stage"]),
        ("aliases", ", ".join(model["aliases"])),
        ("registered", f"{_local(model['created_at'])} by {model['created_by'] or 'nobody'}"),
        ("used by", ", ".join(model["used_by"])),
        ("run", model["run_id"] or ""),
        ("made of", details.get("made_of") or ""),
        ("code", f"snapshot {model['snapshot_id'][:12]}" if model["snapshot_id"] else ""),
        ("environment", _environment(page)),
        *_several("data", [_input(use) for use in model["data"]]),
        *_several("datasets", [f"{one['scenario']}: {_dataset(one)}" for one in details.get("datasets", [])]),
        ("tags", _labels(model["tags"])),
        ("properties", _labels(model["properties"])),
        *_several("metrics", [f"{name} {value_text(value)}" for name, value in model["metrics"].items()]),
        ("files", f"{count_text(len(files), 'file')}, {size_text(model['size'])}"),
        *[("", f"{file['path']}  {size_text(file['size'])}") for file in files[:_FILES_SHOWN]],
        ("", f"and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""),
        *_several("history", [_deed(deed) for deed in page["history"]]),
    ]
    return [(name, text) for name, text in found if text]


def comparison_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['left']} → {found['right']}" + ("   the same files" if found["same_files"] else "")
    for what in ("metrics", "about", "data", "packages", "files", "tags", "properties"):
        for place, one in enumerate(found[what]):
            change = f"{_shown(one['left'], what)} → {_shown(one['right'], what)}"
            if what == "metrics":
                change += _by_how_much(one)
            yield f"  {'' if place else what:<12}{one['name']}  {change}"


def _several(name: str, texts: list[str]) -> list[tuple[str, str]]:
    return [("" if place else name, text) for place, text in enumerate(texts)]


def _environment(page: dict[str, Any]) -> str:
    key, lock = page["model"]["environment_key"], page["environment_lock"]
    if not key:
        return ""
    pinned = [line for line in (lock or "").splitlines() if line and not line.startswith("#")]
    return f"{key}, {count_text(len(pinned), 'package')}"


def _input(use: dict[str, Any]) -> str:
    named = f"{use['dataset_name']}:{use['dataset_version']}" if use["dataset_name"] else ""
    content = f"  {use['digest'][:12]}" if use["digest"] else ""
    return f"{use['name']}: {named or use['datastore'] + '/' + use['path']}{content}"


def _dataset(one: dict[str, Any]) -> str:
    return f"{one['name']}:{one['version']}" if one.get("name") else str(one.get("id"))


def _labels(labels: dict[str, Any]) -> str:
    return ", ".join(key if value is None else f"{key}={value}" for key, value in labels.items())


def _deed(deed: dict[str, Any]) -> str:
    said = {
        "stage": f"{deed['before']} → {deed['after']}",
        "alias": f"is {deed['after']}",
        "alias removed": f"is {deed['before']} no more",
    }.get(deed["what"], deed["what"])
    note = f": {deed['note']}" if deed["note"] else ""
    return f"{_local(deed['at'])}  {said} by {deed['by'] or 'nobody'}{note}"


def _shown(value: Any, what: str) -> str:
    if value is None:
        return "none"
    return size_text(value) if what == "files" else value_text(value)


def _by_how_much(one: dict[str, Any]) -> str:
    numbers = [value for value in (one["left"], one["right"]) if isinstance(value, (int, float))]
    return f"  ({numbers[1] - numbers[0]:+.4g})" if len(numbers) == 2 and numbers[0] != numbers[1] else ""


def _local(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
