"""Request and response types of secrets. No response contains a value."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SetSecret:
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class SecretView:
    name: str
    created_at: float
    updated_at: float
