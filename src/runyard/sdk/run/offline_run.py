"""The stand-in that `Run.get_context()` returns outside of a submitted run. It prints metrics and stores nothing."""

from __future__ import annotations

import sys
import uuid
from typing import Any


class OfflineRun:
    """Accepts the calls of a training script and prints them, so that the script can be tried by hand."""

    def __init__(self) -> None:
        self.id = f"OfflineRun_{uuid.uuid4()}"

    @property
    def input_datasets(self) -> dict[str, Any]:
        """Empty: reading an input raises an error that names it."""
        from runyard.sdk.run.inputs import datasets_of_this_script

        return datasets_of_this_script()

    def log(self, name: str, value: Any, description: str = "", step: int | None = None, timestamp: Any = None) -> None:
        _print("scalar metric", name, value)

    def log_list(self, name: str, value: Any, description: str = "") -> None:
        _print("list metric", name, list(value))

    def log_row(self, name: str, description: str = "", **columns: Any) -> None:
        _print("row metric", name, columns)

    def log_table(self, name: str, value: Any, description: str = "", step: int | None = None, **_: Any) -> None:
        _print("table metric", name, value)

    def log_image(
        self, name: str, path: Any = None, plot: Any = None, description: str = "", step: int | None = None, **_: Any
    ) -> None:
        _print("image", name, path or "a plot")

    def log_confusion_matrix(self, name: str, value: Any, description: str = "", **_: Any) -> None:
        self._print_document("confusion_matrix", name, value)

    def log_accuracy_table(self, name: str, value: Any, description: str = "", **_: Any) -> None:
        self._print_document("accuracy_table", name, value)

    def log_residuals(self, name: str, value: Any, description: str = "", **_: Any) -> None:
        self._print_document("residuals", name, value)

    def log_predictions(self, name: str, value: Any, description: str = "", **_: Any) -> None:
        self._print_document("predictions", name, value)

    def log_histogram(
        self, name: str, values: Any = None, bins: int = 64, *, bin_edges: Any = None, bin_counts: Any = None, **_: Any
    ) -> None:
        from runyard.context import documents

        _print("histogram", name, documents.make_histogram(name, values, bins, bin_edges, bin_counts))

    def log_text(self, name: str, text: str, **_: Any) -> None:
        from runyard.context import documents

        _print("text", name, documents.validate_text(name, text))

    def _print_document(self, kind: str, name: str, value: Any) -> None:
        """Validate as in a submitted run, so that a mistake is found when the script is tried by hand."""
        from runyard.context import documents

        _print(kind.replace("_", " "), name, documents.validate_document(kind, name, value))

    def tag(self, key: str, value: Any = None) -> None:
        _print("tag", key, value)

    def set_tags(self, tags: dict[str, Any]) -> None:
        for key, value in tags.items():
            self.tag(key, value)

    def log_params(self, params: Any) -> None:
        from runyard.sdk.core.labels import as_params

        for name, value in as_params(params).items():
            _print("parameter", name, value)

    def add_properties(self, properties: dict[str, Any]) -> None:
        for key, value in properties.items():
            _print("property", key, value)

    def upload_file(self, name: str, path_or_stream: Any, **_: Any) -> None:
        _print("file", name, path_or_stream)

    def upload_files(self, names: list[str], paths: list[str], **_: Any) -> None:
        for name, path in zip(names, paths):
            self.upload_file(name, path)

    def upload_folder(self, name: str, path: str, **_: Any) -> None:
        _print("folder", name, path)

    def register_model(self, model_name: str, model_path: str | None = None, **_: Any) -> None:
        _print("model", model_name, model_path or model_name)

    def child_run(self, name: str | None = None, **_: Any) -> OfflineRun:
        return OfflineRun()

    def complete(self, **_: Any) -> None:
        pass

    def fail(self, *_: Any, **__: Any) -> None:
        pass

    def cancel(self) -> None:
        pass

    def flush(self, timeout_seconds: float = 300) -> None:
        pass

    def __enter__(self) -> OfflineRun:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def _print(kind: str, name: str, value: Any) -> None:
    sys.stdout.write(f"Attempted to log {kind} {name}:\n{value}\n")
    sys.stdout.flush()
