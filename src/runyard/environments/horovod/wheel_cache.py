"""Wheels that were built and proven, kept by everything that they depend on.

<shelf>/horovod/<key>/          facts.json and one wheel; complete when it has this name
<shelf>/horovod/<key>.lock      held by the one who builds it, in whichever process
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from runyard import clock
from runyard.environments.build_process import Watch
from runyard.environments.prepared import PreparationAbandoned

LOCATION = "RUNYARD_WHEEL_CACHE"
FOLDER = "wheels"  # inside the depot's root, when no other place is named

_LOOK_EVERY_S = 0.1
_WAITING_EVERY_S = 5.0


@dataclass(frozen=True)
class Facts:
    """What a wheel depends on. Two wheels with the same facts can stand in for each other."""

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
class Kept:
    key: str
    wheel: Path


class Shelf:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "horovod"

    def find(self, facts: Facts) -> Kept | None:
        """Without a compiler (an empty one in the facts), a wheel that any compiler made."""
        if facts.compiler:
            return self._at(facts.key)
        for key, known in self._all():
            if replace(known, compiler="") == facts:
                return self._at(key)
        return None

    def has_any(self, horovod: str, machine: str) -> bool:
        return any(known.horovod == horovod and known.machine == machine for _, known in self._all())

    def keep(self, wheel: Path, facts: Facts) -> Kept:
        """A copy of the wheel, there for everybody in one step."""
        half = self._folder / f"{facts.key}.half-{uuid.uuid4().hex[:8]}"
        half.mkdir(parents=True)
        try:
            shutil.copyfile(wheel, half / wheel.name)
            (half / "facts.json").write_text(json.dumps(asdict(facts), indent=1))
            with contextlib.suppress(OSError):  # somebody was faster, with the same content
                half.rename(self._folder / facts.key)
        finally:
            shutil.rmtree(half, ignore_errors=True)
        return Kept(facts.key, self._folder / facts.key / wheel.name)

    @contextlib.contextmanager
    def building(self, facts: Facts, watch: Watch) -> Iterator[None]:
        """One builder at a time for the same wheel, across threads and processes; its end frees it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / f"{facts.key}.lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            started = said_at = clock.monotonic()
            said = False
            while not _locked(descriptor):
                now = clock.monotonic()
                if not said or now - said_at >= _WAITING_EVERY_S:
                    elapsed = f", {clock.duration_text(now - started)}" if said else ""
                    watch.say(f"waiting for the same Horovod, being built for another environment{elapsed}")
                    said, said_at = True, now
                if watch.abandoned.wait(_LOOK_EVERY_S):
                    raise PreparationAbandoned("abandoned while waiting for Horovod to be built")
            yield
        finally:
            os.close(descriptor)

    def _at(self, key: str) -> Kept | None:
        wheel = next(iter(sorted((self._folder / key).glob("*.whl"))), None)
        return Kept(key, wheel) if wheel else None

    def _all(self) -> Iterator[tuple[str, Facts]]:
        for path in sorted(self._folder.glob("*/facts.json")):
            if "." in path.parent.name:
                continue
            try:
                data = json.loads(path.read_text())
                known = Facts(**{**data, "frameworks": tuple(data["frameworks"]), "settings": tuple(data["settings"])})
            except (OSError, ValueError, KeyError, TypeError):
                continue  # written by another version, or just on its way out
            yield path.parent.name, known


def location(environ: Mapping[str, str], root: Path) -> Path:
    named = environ.get(LOCATION)
    return Path(named).expanduser() if named else root / FOLDER


def clean_leftovers(folder: Path) -> None:
    """Copies that a killed yard left half-made; only for a shelf that no other process uses."""
    for half in folder.glob("horovod/*.half-*"):
        shutil.rmtree(half, ignore_errors=True)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
