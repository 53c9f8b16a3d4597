"""Secrets: stored by the yard, referred to by name, and delivered only to the processes of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runyard.errors import UserErrorException

if TYPE_CHECKING:
    from runyard.client.connection import Connection


@dataclass(frozen=True)
class Secret:
    """A reference to a stored secret, as the value of an environment variable of a run.

        Estimator(".", entry_script="train.py", environment_variables={"HF_TOKEN": Secret("hf-token")})

    Args:
        name: Name of the secret, as set by ``runyard secrets set`` or ``workspace.secrets.set``.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise UserErrorException(f"the name of a secret must be text, got {self.name!r}", hint="Secret('hf-token')")

    @property
    def variable(self) -> str:
        """The variable of a secret for which none is named: HF_TOKEN for hf-token."""
        return self.name.upper().replace("-", "_")


class Secrets:
    """The secrets of a workspace. Values can be replaced and used by runs, but not read back."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set(self, name: str, value: str) -> Secret:
        """Store or replace a secret.

        Args:
            name: A letter first, then letters, digits, '-' and '_'.
            value: The value. Do not write it into a script: read it from a file or from the environment.

        Returns:
            A reference to it, for ``environment_variables`` of a run.
        """
        if not isinstance(value, str):
            raise UserErrorException(f"the value of secret {name!r} must be text, got {type(value).__name__}")
        self._connection.post("/api/secrets", {"name": name, "value": value})
        return Secret(name)

    def names(self) -> list[str]:
        return [secret["name"] for secret in self._connection.get("/api/secrets")]

    def delete(self, name: str) -> None:
        """Delete a secret. Runs that have started keep the value; runs that start later fail."""
        self._connection.delete(f"/api/secrets/{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()


def secret_of_this_run(name: str) -> str:
    """Return the value of a secret that this run uses, or of the environment variable ``name``.

    Raises:
        UserErrorException: The run does not use the secret.
    """
    variables: dict[str, Any] = json.loads(os.environ.get("RUNYARD_SECRETS") or "{}")
    value = os.environ.get(variables.get(name, name))
    if value is None:
        raise UserErrorException(
            f"this process has no secret {name!r}",
            hint=f"store it with `runyard secrets set {name}`, and submit the run with "
            f"environment_variables={{{Secret(name).variable!r}: Secret({name!r})}} or --secret {name}",
        )
    return value
