"""State that the parts of Run share, and the portal addresses that old scripts put together themselves."""

from __future__ import annotations

from runyard.errors import UserErrorException

TYPE_CHECKING = False  # importing typing takes longer than importing this module
if TYPE_CHECKING:
    from typing import Any

    from runyard.client.connection import Connection
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.run.interactive import InteractiveSession


class Portal:
    """Address templates of the cloud portal. Only the names remain; the URLs lead nowhere."""

    DELIM = "#"
    WORKSPACE_FMT = "?wsid=/subscriptions/{0}/resourceGroups/{1}/workspaces/{2}"
    TID_FMT = "&tid={0}"
    EXPERIMENT_NAME_PATH = "/experiments/{0}"
    EXPERIMENT_ID_PATH = "/experiments/id/{0}"

    @property
    def portal_url(self) -> str:
        """The same as :meth:`get_portal_url`."""
        return self.get_portal_url()

    def get_portal_url(self) -> str:
        raise NotImplementedError

    @classmethod
    def get_docs_url(cls) -> str:
        """Raise UserErrorException: the documentation is shipped with Runyard and has no URL."""
        raise UserErrorException(
            "the documentation has no URL: it is shipped with Runyard",
            hint="see docs/ in its folder, or `runyard --help`",
        )


class RunBase(Portal):
    """The run's identity, its connection to the yard, and the last view that the yard returned of it."""

    id: str
    experiment: Experiment
    _connection: Connection
    _view: dict[str, Any]  # a wire.runs.RunView
    _inside: bool = False  # True in the training script of this run
    _session: InteractiveSession | None = None  # set in the process that opened an interactive run

    def _refresh(self) -> dict[str, Any]:
        view: dict[str, Any] = self._connection.get(f"/api/runs/{self.id}")
        self._view = view
        return view
