"""Findings of a check, and its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runyard import clock

DAMAGE, NOTE = "damage", "note"
_REPORT_EVERY_S = 0.2


@dataclass(frozen=True)
class Finding:
    area: str
    level: str  # DAMAGE, or NOTE for something harmless
    subject: str
    problem: str
    remedy: str


@dataclass
class Area:
    """The number of items and bytes that were checked in one area."""

    name: str
    items: int = 0
    bytes: int = 0


@dataclass
class Report:
    """Collects findings; ``on_progress`` is called a few times per second with the current area."""

    quick: bool
    on_progress: Callable[[Area], None]
    findings: list[Finding] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    _reported_at: float = 0.0

    def begin(self, name: str) -> None:
        self.areas.append(Area(name))
        self._show()

    def checked(self, size: int = 0) -> None:
        area = self.areas[-1]
        area.items += 1
        area.bytes += size
        if clock.monotonic() - self._reported_at > _REPORT_EVERY_S:
            self._show()

    def damage(self, subject: str, problem: str, remedy: str) -> None:
        self.findings.append(Finding(self.areas[-1].name, DAMAGE, subject, problem, remedy))

    def note(self, subject: str, problem: str, remedy: str) -> None:
        self.findings.append(Finding(self.areas[-1].name, NOTE, subject, problem, remedy))

    def _show(self) -> None:
        self._reported_at = clock.monotonic()
        self.on_progress(self.areas[-1])
