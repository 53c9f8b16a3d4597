"""Ways to sign in to a cloud. Scripts make one and hand it to a workspace, which says that nobody has to sign in."""

from __future__ import annotations

from typing import Any


class _SignIn:
    """Whatever it was given is forgotten at once: it may be a password."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def get_authentication_header(self) -> dict[str, str]:
        """Empty: the yard's socket is open to its owner."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InteractiveLoginAuthentication(_SignIn):
    pass


class ServicePrincipalAuthentication(_SignIn):
    pass


class AzureCliAuthentication(_SignIn):
    pass


class MsiAuthentication(_SignIn):
    pass


class TokenAuthentication(_SignIn):
    pass
