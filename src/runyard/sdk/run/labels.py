"""Labels of a run: tags, properties and parameters."""

from __future__ import annotations

from runyard.sdk.run.base import RunBase

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Optional

_DESCRIPTION = "mlflow.note.content"  # the tag that MLflow's clients show as a run's description


class RunLabels(RunBase):
    @property
    def tags(self) -> dict[str, str | None]:
        """The tags of the last request; :meth:`get_tags` requests them again."""
        return dict(self._view["tags"])

    @property
    def properties(self) -> dict[str, str | None]:
        """The properties of the last request; :meth:`get_properties` requests them again."""
        return dict(self._view["properties"])

    @property
    def description(self) -> Optional[str]:
        text: Optional[str] = self._view["tags"].get(_DESCRIPTION)
        return text

    @description.setter
    def description(self, text: str) -> None:
        self.set_tags({_DESCRIPTION: text})

    def tag(self, key: str, value: Any = None) -> None:
        """Set one tag."""
        self.set_tags({key: value})

    def set_tags(self, tags: dict[str, Any]) -> None:
        """Set tags; values are converted to text, None stays None."""
        self._change_labels("tags", tags)

    def remove_tags(self, tags: list[str]) -> None:
        """Remove tags by name."""
        self._view = self._connection.patch(f"/api/runs/{self.id}/tags", {"set": {}, "remove": list(tags)})

    def get_tags(self) -> dict[str, str | None]:
        """Request the current tags."""
        return dict(self._refresh()["tags"])

    def add_properties(self, properties: dict[str, Any]) -> None:
        """Add properties. They are immutable: another value for an existing key raises UserErrorException."""
        self._change_labels("properties", properties)

    def get_properties(self) -> dict[str, str | None]:
        """Request the current properties."""
        return dict(self._refresh()["properties"])

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Record parameters, such as hyperparameters, in addition to the arguments of the script.

        Args:
            params: Values by name; they are stored as text. An existing parameter gets the new value.

        Raises:
            UserErrorException: ``params`` is not a dict, or a name is not text.
        """
        from runyard.sdk.core.labels import as_params

        self._connection.patch(f"/api/runs/{self.id}/params", {"params": as_params(params)})

    def get_params(self) -> dict[str, str]:
        """Request the parameters: the arguments of the script, and those that were recorded."""
        return dict(self._connection.get(f"/api/runs/{self.id}/params")["params"])

    def _change_labels(self, kind: str, labels: dict[str, Any]) -> None:
        from runyard.sdk.core.labels import as_labels

        body = {"set": as_labels(labels, kind), "remove": []}
        self._view = self._connection.patch(f"/api/runs/{self.id}/{kind}", body)
