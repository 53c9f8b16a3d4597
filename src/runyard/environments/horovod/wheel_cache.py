"""Cache of wheels that were built and tested, by everything that they depend on.

<cache>/horovod/<key>/          facts.json and one wheel
<cache>/horovod/<key>.untested/ the same, before the wheel's test has ended
<cache>/horovod/<key>.lock      locked by the process that builds the wheel
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from runyard import clock
from runyard.environments.build_process import BuildContext
from runyard.environments.prepared import PreparationCanceled
from runyard.posix import file_lock
from runyard.posix.atomic_write import create_folder

LOCATION = "RUNYARD_WHEEL_CACHE"
FOLDER = "wheels"  # in the manager's root, if no location is set

_POLL_S = 0.1
_REPORT_EVERY_S = 5.0


@dataclass(frozen=True)
class WheelFacts:
    """Everything that a wheel depends on. Wheels with equal facts are interchangeable."""

    horovod: str
    recipe: str
    python: str  # "cp311"
    frameworks: tuple[str, ...]  # "torch 2.13.0+cpu <hash of its binaries and headers>"
    openmpi: str
    compiler: str
    machine: str
    settings: tuple[str, ...] = ()  # HOROVOD_GPU_OPERATIONS=NCCL …

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class CachedWheel:
    key: str
    wheel: Path


class WheelCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "horovod"

    def find(self, facts: WheelFacts) -> CachedWheel | None:
        """Find a wheel. If the machine has no compiler (empty in the facts), a wheel of any compiler."""
        if facts.compiler:
            return self._load(facts.key)
        for key, cached_facts in self._all():
            if replace(cached_facts, compiler="") == facts:
                return self._load(key)
        return None

    def has_any(self, horovod: str, machine: str) -> bool:
        return any(facts.horovod == horovod and facts.machine == machine for _, facts in self._all())

    def add_untested(self, wheel: Path, facts: WheelFacts) -> Path:
        """Keep a copy of a wheel that was not tested yet; atomic. ``find`` does not return it."""
        folder = self._untested(facts)
        with create_folder(folder) as draft:
            shutil.copyfile(wheel, draft / wheel.name)
            (draft / "facts.json").write_text(json.dumps(asdict(facts), indent=1))
        return folder / wheel.name

    def find_untested(self, facts: WheelFacts) -> Path | None:
        return next(iter(sorted(self._untested(facts).glob("*.whl"))), None)

    def discard_untested(self, facts: WheelFacts) -> None:
        shutil.rmtree(self._untested(facts), ignore_errors=True)

    def accept(self, facts: WheelFacts) -> CachedWheel:
        """Make an untested wheel available, after its test."""
        self._untested(facts).replace(self._folder / facts.key)
        cached = self._load(facts.key)
        assert cached is not None
        return cached

    def _untested(self, facts: WheelFacts) -> Path:
        return self._folder / f"{facts.key}.untested"

    @contextlib.contextmanager
    def build_lock(self, facts: WheelFacts, context: BuildContext) -> Iterator[None]:
        """Ensure that one thread of one process builds a wheel; others wait. Released when the process ends."""
        self._folder.mkdir(parents=True, exist_ok=True)
        started_at, reported_at = clock.monotonic(), None
        while (lock := file_lock.acquire(self._folder / f"{facts.key}.lock")) is None:
            now = clock.monotonic()
            if reported_at is None or now - reported_at >= _REPORT_EVERY_S:
                elapsed = "" if reported_at is None else f", {clock.duration_text(now - started_at)}"
                context.report(f"waiting for the same Horovod, being built for another environment{elapsed}")
                reported_at = now
            if context.canceled.wait(_POLL_S):
                raise PreparationCanceled("canceled while waiting for a build of Horovod")
        try:
            yield
        finally:
            os.close(lock)

    def _load(self, key: str) -> CachedWheel | None:
        wheel = next(iter(sorted((self._folder / key).glob("*.whl"))), None)
        return CachedWheel(key, wheel) if wheel else None

    def _all(self) -> Iterator[tuple[str, WheelFacts]]:
        for path in sorted(self._folder.glob("*/facts.json")):
            if "." in path.parent.name:
                continue
            try:
                data = json.loads(path.read_text())
                lists = {"frameworks": tuple(data["frameworks"]), "settings": tuple(data["settings"])}
                facts = WheelFacts(**{**data, **lists})
            except (OSError, ValueError, KeyError, TypeError):
                continue  # written by another version, or being removed
            yield path.parent.name, facts


def location(environ: Mapping[str, str], root: Path) -> Path:
    configured = environ.get(LOCATION)
    return Path(configured).expanduser() if configured else root / FOLDER


def clean_leftovers(folder: Path) -> None:
    """Remove partial copies of a killed yard. Only for a cache that no other process uses."""
    for pattern in ("horovod/*.draft", "horovod/*.half-*"):
        for draft in folder.glob(pattern):
            shutil.rmtree(draft, ignore_errors=True)
