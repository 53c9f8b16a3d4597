"""Describes a model version, and the comparison of two versions, as lines of text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Optional

from runyard.cli.formatting import count_text, size_text, value_text

_MAX_FILES = 10


def facts(page: dict[str, Any]) -> list[tuple[str, str]]:
    """Labels and texts of a model's properties, without empty ones."""
    model, details = page["model"], page["model"]["details"]
    files = page["files"]
    title = page["title"]
    result = [
        ("in MLflow", title if title != model["name"] else ""),
        ("description", model["description"] or ""),
        ("framework", " ".join(filter(None, (model["framework"], model["framework_version"])))),
        ("stage", model["stage"]),
        ("aliases", ", ".join(model["aliases"])),
        ("registered", f"{_local(model['created_at'])}{_by(model['created_by'])}"),
        ("used by", ", ".join(model["used_by"])),
        ("run", model["run_id"] or ""),
        ("made of", details.get("made_of") or ""),
        ("code", f"snapshot {model['snapshot_id'][:12]}" if model["snapshot_id"] else ""),
        ("environment", _environment(page)),
        *_several("data", [_input(use) for use in model["data"]]),
        *_several(
            "datasets", [f"{dataset['scenario']}: {_dataset(dataset)}" for dataset in details.get("datasets", [])]
        ),
        ("tags", _labels(model["tags"])),
        ("properties", _labels(model["properties"])),
        *_several("metrics", [f"{name} {value_text(value)}" for name, value in model["metrics"].items()]),
        ("files", f"{count_text(len(files), 'file')}, {size_text(model['size'])}"),
        *[("", f"{file['path']}  {size_text(file['size'])}") for file in files[:_MAX_FILES]],
        ("", f"and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""),
        *_several("history", [_history_line(entry) for entry in page["history"]]),
    ]
    return [(name, text) for name, text in result if text]


def comparison_lines(comparison: dict[str, Any]) -> Iterator[str]:
    yield f"{comparison['left']} → {comparison['right']}" + ("   identical files" if comparison["same_files"] else "")
    for section in ("metrics", "about", "data", "packages", "files", "tags", "properties"):
        for index, item in enumerate(comparison[section]):
            change = f"{_format(item['left'], section)} → {_format(item['right'], section)}"
            if section == "metrics":
                change += _difference(item)
            yield f"  {'' if index else section:<12}{item['name']}  {change}"


def _several(name: str, texts: list[str]) -> list[tuple[str, str]]:
    return [("" if index else name, text) for index, text in enumerate(texts)]


def _environment(page: dict[str, Any]) -> str:
    key, lock = page["model"]["environment_key"], page["environment_lock"]
    if not key:
        return ""
    pinned = [line for line in (lock or "").splitlines() if line and not line.startswith("#")]
    return f"{key}, {count_text(len(pinned), 'package')}"


def _input(use: dict[str, Any]) -> str:
    dataset = f"{use['dataset_name']}:{use['dataset_version']}" if use["dataset_name"] else ""
    content = f"  {use['digest'][:12]}" if use["digest"] else ""
    return f"{use['name']}: {dataset or use['datastore'] + '/' + use['path']}{content}"


def _dataset(dataset: dict[str, Any]) -> str:
    return f"{dataset['name']}:{dataset['version']}" if dataset.get("name") else str(dataset.get("id"))


def _labels(labels: dict[str, Any]) -> str:
    return ", ".join(key if value is None else f"{key}={value}" for key, value in labels.items())


def _by(person: Optional[str]) -> str:
    return f" by {person}" if person else ""  # MLflow's client does not send it


def _history_line(entry: dict[str, Any]) -> str:
    action = {
        "stage": f"{entry['before']} → {entry['after']}",
        "alias": f"alias {entry['after']} set",
        "alias removed": f"alias {entry['before']} removed",
    }.get(entry["what"], entry["what"])
    note = f": {entry['note']}" if entry["note"] else ""
    return f"{_local(entry['at'])}  {action}{_by(entry['by'])}{note}"


def _format(value: Any, section: str) -> str:
    if value is None:
        return "none"
    return size_text(value) if section == "files" else value_text(value)


def _difference(item: dict[str, Any]) -> str:
    numbers = [value for value in (item["left"], item["right"]) if isinstance(value, (int, float))]
    return f"  ({numbers[1] - numbers[0]:+.4g})" if len(numbers) == 2 and numbers[0] != numbers[1] else ""


def _local(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
