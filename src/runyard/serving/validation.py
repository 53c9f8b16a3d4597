"""What can be refused is refused here, before anything is built or started."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.errors import UserErrorException, WebserviceException
from runyard.models.registry import Models
from runyard.orchestrator.components import Rooms
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.spec.service import Batching, ServiceConfiguration, VersionSpec, Wanted
from runyard.store.models import ModelRecord

NAME = re.compile(r"[a-z][-a-z0-9]{1,30}[a-z0-9]")
KINDS = ("Local", "ACI", "AKS")
ONNX = "onnx"
_LONGEST_SOCKET = 107  # in Linux
ONNX_ENVIRONMENT = EnvironmentSpec(
    name="onnx-service", pip=("numpy", "onnxruntime", "orjson", "uvloop; sys_platform == 'linux'")
)


def checked_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise WebserviceException(
            f"a service cannot be named {name!r}",
            hint="3 to 32 characters: lower-case letters, digits and '-', a letter first, no '-' at the end",
        )
    return name


def checked_kind(kind: str) -> None:
    if kind not in KINDS:
        raise WebserviceException(f"there are no services of kind {kind!r}", hint=", ".join(KINDS))


def checked_configuration(given: dict[str, Any]) -> ServiceConfiguration:
    found = from_json(ServiceConfiguration, given)
    for what, value, least, most in (
        ("workers", found.workers, 1, 256),
        ("port", found.port, 0, 65535),
        ("body_mb", found.limits.body_mb, 0.001, 16_000),
        ("bodies_mb", found.limits.bodies_mb, 0.001, 1_000_000),
        ("timeout_s", found.limits.timeout_s, 0.05, 86_400),
        ("waiting", found.limits.waiting, 1, 1_000_000),
        ("connections", found.limits.connections, 1, 100_000),
        ("receive_s", found.limits.receive_s, 0.05, 86_400),
        ("idle_s", found.limits.idle_s, 0.05, 86_400),
        ("batching.largest", (found.batching or Batching()).largest, 1, 1_000_000),
        ("batching.wait_ms", (found.batching or Batching()).wait_ms, 0, 60_000),
    ):
        if not least <= value <= most:
            raise WebserviceException(f"{what} of a service is from {least:g} to {most:g}, not {value:g}")
    return found


def place_of_key(which: str) -> int:
    places = {"primary": 0, "secondary": 1}
    if which.lower() not in places:
        raise UserErrorException(f"there is no key {which!r}", hint="'Primary' or 'Secondary'")
    return places[which.lower()]


def checked_key(value: str | None) -> str | None:
    if value is not None and (len(value) < 8 or not value.isascii() or not value.isprintable() or " " in value):
        # a header is ASCII: any other key could never be sent
        raise UserErrorException("a key has at least 8 characters, all of them ASCII, and no spaces")
    return value


def with_key(wanted: Wanted, place: int, key: str) -> Wanted:
    pair = list(wanted.keys)
    pair[place] = key
    return replace(wanted, keys=tuple(pair))


def checked_socket(name: str, path: Path) -> None:
    """Of a version beside another: the keeper that cannot make it would end, with the version that serves."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise WebserviceException(
            f"{name!r} cannot have two versions at once: the socket between them would be {path}, "
            f"and the path of a socket has at most {_LONGEST_SOCKET} bytes",
            hint="a RUNYARD_HOME with a shorter path; service.update(…) replaces the version without a pause",
        )


def checked_share(share: int) -> int:
    if not 0 <= share <= 100:
        raise WebserviceException(f"a share of the traffic is from 0 to 100 per cent, not {share}")
    return share


def checked_traffic(traffic: dict[str, int]) -> dict[str, int]:
    wrong = [version for version, share in traffic.items() if not 0 <= share <= 100]
    if wrong or sum(traffic.values()) != 100:
        shown = ", ".join(f"version {version}: {share} %" for version, share in traffic.items())
        raise WebserviceException(
            f"the shares of a service's versions add up to 100 per cent, and these do not: {shown}",
            hint="give every version its share: 1=90 2=10, and 1=100 for one alone",
        )
    return traffic


def with_share(traffic: dict[str, int], version: str, share: int) -> dict[str, int]:
    """The newcomer gets its share, the others share the rest as they did."""
    total = sum(traffic.values()) or 100
    rest = 100 - share
    kept = {number: part * rest // total for number, part in traffic.items()}
    if kept:
        kept[max(kept, key=lambda number: kept[number])] += rest - sum(kept.values())
    return {**{number: part for number, part in kept.items() if part}, version: share if kept else 100}


def chosen_models(models: Models, texts: Sequence[str]) -> list[ModelRecord]:
    return [models.find(text) for text in texts]


def checked_spec(rooms: Rooms, models: Models, chosen: Sequence[ModelRecord], spec: VersionSpec) -> None:
    if spec.entry_script:
        if not spec.snapshot_id:
            raise WebserviceException(f"the scoring script {spec.entry_script!r} has no code with it")
    elif not chosen:
        raise WebserviceException(
            "a service needs a model, or a scoring script",
            hint="models=[…], or an InferenceConfig; on the command line MODEL, or --script FILE",
        )
    elif len(chosen) > 1 or not onnx_file(models, chosen[0]):
        names = ", ".join(record.id for record in chosen)
        raise WebserviceException(
            f"{names} cannot be served without a scoring script: that works for one ONNX model",
            hint="give an InferenceConfig(entry_script=…), on the command line --script FILE; or export it with "
            "runyard.onnx.export",
        )
    environment = environment_of(rooms, models, chosen, spec)
    if environment.container is not None:
        raise WebserviceException(
            f"the environment {environment.name!r} is the image {environment.container.image}, and services run "
            "without containers here",
            hint="give an environment made of packages: InferenceConfig(entry_script=…, environment=…)",
        )


def environment_of(rooms: Rooms, models: Models, chosen: Sequence[ModelRecord], spec: VersionSpec) -> EnvironmentSpec:
    """The one that was named; that of a model which needs no code; or that of the run which trained the model."""
    if spec.environment is not None:
        return spec.environment
    if not spec.entry_script:
        return ONNX_ENVIRONMENT
    for record in chosen:
        if record.run_id and rooms.runs.has(record.run_id):
            spec_of_run = rooms.runs.load(record.run_id).spec
            if spec_of_run:  # a run that was a notebook's own process has none
                return from_json(RunSpec, spec_of_run).environment
    return EnvironmentSpec()


def onnx_file(models: Models, record: ModelRecord) -> str:
    """Its path among the model's files; empty when it is none, or one of several."""
    found = [file.path for file in models.files(record.name, record.version) if file.path.endswith(".onnx")]
    if "model.onnx" in found:
        return "model.onnx"
    return found[0] if len(found) == 1 and (record.framework or ONNX).lower() == ONNX else ""
