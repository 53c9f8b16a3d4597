"""The vault of the SDK v1, backed by the secrets of the yard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from runyard.errors import UserErrorException
from runyard.sdk.core.secrets import secret_of_this_run

if TYPE_CHECKING:
    from runyard.sdk.core.workspace import Workspace


class Keyvault:
    """The secrets of a workspace, with the methods of the SDK v1; see also ``workspace.secrets``.

    Values can be read only in a run that uses them.

    Args:
        workspace: The workspace.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def set_secret(self, name: str, value: str) -> None:
        """Store or replace a secret."""
        self._workspace.secrets.set(name, value)

    def set_secrets(self, secrets_batch: Mapping[str, str]) -> None:
        """Store or replace several secrets."""
        for name, value in secrets_batch.items():
            self.set_secret(name, value)

    def get_secret(self, name: str) -> str:
        """Return the value of a secret, in a run that uses it.

        Raises:
            UserErrorException: This process is not a run that uses the secret.
        """
        try:
            return secret_of_this_run(name)
        except UserErrorException as error:
            raise UserErrorException(f"secret {name!r} cannot be read here: {error.message}", hint=error.hint) from None

    def get_secrets(self, secrets: Iterable[str]) -> dict[str, str]:
        """Return several secrets by name."""
        return {name: self.get_secret(name) for name in secrets}

    def list_secrets(self) -> list[dict[str, str]]:
        """Return the names of all secrets, as ``[{"name": …}]``."""
        return [{"name": name} for name in self._workspace.secrets.names()]

    def delete_secret(self, name: str) -> None:
        self._workspace.secrets.delete(name)

    def delete_secrets(self, secrets: Iterable[str]) -> None:
        for name in secrets:
            self.delete_secret(name)
