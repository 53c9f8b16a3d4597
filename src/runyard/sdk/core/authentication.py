"""Sign-in classes of the cloud SDK. Scripts pass one to a Workspace, which needs no sign-in."""

from __future__ import annotations

from typing import Any


class _Authentication:
    """Discards all arguments: they may be passwords."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def get_authentication_header(self) -> dict[str, str]:
        """Return no header: the yard's socket is protected by file permissions."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InteractiveLoginAuthentication(_Authentication):
    pass


class ServicePrincipalAuthentication(_Authentication):
    pass


class AzureCliAuthentication(_Authentication):
    pass


class MsiAuthentication(_Authentication):
    pass


class TokenAuthentication(_Authentication):
    pass
