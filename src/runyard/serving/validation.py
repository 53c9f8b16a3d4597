"""Validation of service requests, before anything is built or started."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.errors import UserErrorException, WebserviceException
from runyard.models.registry import Models
from runyard.orchestrator.components import Components
from runyard.spec.environment import EnvironmentSpec
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec
from runyard.spec.service import Batching, DesiredState, ServiceConfiguration, VersionSpec
from runyard.store.models import ModelRecord

NAME = re.compile(r"[a-z][-a-z0-9]{1,30}[a-z0-9]")
KINDS = ("Local", "ACI", "AKS")
ONNX = "onnx"
_MAX_SOCKET_PATH = 107  # bytes, on Linux
ONNX_ENVIRONMENT = EnvironmentSpec(
    name="onnx-service", pip=("numpy", "onnxruntime", "orjson", "uvloop; sys_platform == 'linux'")
)


def validate_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise WebserviceException(
            f"invalid service name {name!r}",
            hint="use 3 to 32 lowercase letters, digits or '-', starting with a letter and not ending with '-'",
        )
    return name


def validate_kind(kind: str) -> None:
    if kind not in KINDS:
        raise WebserviceException(f"unknown service kind {kind!r}", hint=f"available kinds: {', '.join(KINDS)}")


def parse_configuration(values: dict[str, Any]) -> ServiceConfiguration:
    configuration = from_json(ServiceConfiguration, values)
    limits, batching = configuration.limits, configuration.batching or Batching()
    for name, value, minimum, maximum in (
        ("workers", configuration.workers, 1, 256),
        ("port", configuration.port, 0, 65535),
        ("body_mb", limits.body_mb, 0.001, 16_000),
        ("bodies_mb", limits.bodies_mb, 0.001, 1_000_000),
        ("timeout_s", limits.timeout_s, 0.05, 86_400),
        ("waiting", limits.waiting, 1, 1_000_000),
        ("connections", limits.connections, 1, 100_000),
        ("receive_s", limits.receive_s, 0.05, 86_400),
        ("idle_s", limits.idle_s, 0.05, 86_400),
        ("retries", limits.retries, 0, 10),
        ("batching.largest", batching.largest, 1, 1_000_000),
        ("batching.wait_ms", batching.wait_ms, 0, 60_000),
    ):
        if not minimum <= value <= maximum:
            raise WebserviceException(f"{name} must be between {minimum:g} and {maximum:g}, got {value:g}")
    return configuration


def key_index(name: str) -> int:
    indexes = {"primary": 0, "secondary": 1}
    if name.lower() not in indexes:
        raise UserErrorException(f"unknown key {name!r}", hint="use 'Primary' or 'Secondary'")
    return indexes[name.lower()]


def validate_key(value: str | None) -> str | None:
    if value is not None and (len(value) < 8 or not value.isascii() or not value.isprintable() or " " in value):
        # a header is ASCII: another key could never be sent
        raise UserErrorException("a key must have at least 8 ASCII characters and no spaces")
    return value


def with_key(state: DesiredState, index: int, key: str) -> DesiredState:
    keys = list(state.keys)
    keys[index] = key
    return replace(state, keys=tuple(keys))


def validate_socket_path(name: str, path: Path) -> None:
    """Check the socket of a second version: a supervisor that cannot create it would end, and with it the service."""
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        raise WebserviceException(
            f"{name!r} cannot have two versions: the path of their socket, {path}, "
            f"is longer than {_MAX_SOCKET_PATH} bytes",
            hint="use a RUNYARD_HOME with a shorter path, or replace the version with service.update(…)",
        )


def validate_share(share: int) -> int:
    if not 0 <= share <= 100:
        raise WebserviceException(f"traffic share must be between 0 and 100 percent, got {share}")
    return share


def validate_traffic(traffic: dict[str, int]) -> dict[str, int]:
    invalid = [version for version, share in traffic.items() if not 0 <= share <= 100]
    if invalid or sum(traffic.values()) != 100:
        shares = ", ".join(f"version {version}: {share} %" for version, share in traffic.items())
        raise WebserviceException(
            f"traffic shares must add up to 100 percent, got {shares}",
            hint="give every version a share, such as 1=90 2=10, or 1=100 for a single version",
        )
    return traffic


def with_share(traffic: dict[str, int], version: str, share: int) -> dict[str, int]:
    """Give a new version its share and scale the scaled to the rest."""
    total = sum(traffic.values()) or 100
    rest = 100 - share
    scaled = {number: part * rest // total for number, part in traffic.items()}
    if scaled:
        scaled[max(scaled, key=lambda number: scaled[number])] += rest - sum(scaled.values())
    return {**{number: part for number, part in scaled.items() if part}, version: share if scaled else 100}


def find_models(models: Models, texts: Sequence[str]) -> list[ModelRecord]:
    return [models.find(text) for text in texts]


def validate_spec(components: Components, models: Models, records: Sequence[ModelRecord], spec: VersionSpec) -> None:
    if spec.entry_script:
        if not spec.snapshot_id:
            raise WebserviceException(f"the request has no code for the scoring script {spec.entry_script!r}")
    elif not records:
        raise WebserviceException(
            "a service needs a model or a scoring script",
            hint="pass models=[…] or an InferenceConfig; on the command line, MODEL or --script FILE",
        )
    elif len(records) > 1 or not onnx_file(models, records[0]):
        names = ", ".join(record.id for record in records)
        raise WebserviceException(
            f"{names} cannot be served without a scoring script; only a single ONNX model can",
            hint="pass InferenceConfig(entry_script=…), on the command line --script FILE, or export the model with "
            "runyard.onnx.export",
        )
    environment = environment_of(components, models, records, spec)
    if environment.container is not None:
        raise WebserviceException(
            f"the environment {environment.name!r} is the container image {environment.container.image}; "
            "services do not support containers",
            hint="use an environment made of packages: InferenceConfig(entry_script=…, environment=…)",
        )


def environment_of(
    components: Components, models: Models, records: Sequence[ModelRecord], spec: VersionSpec
) -> EnvironmentSpec:
    """The specified environment, the default one for ONNX models, or that of the run which trained the model."""
    if spec.environment is not None:
        return spec.environment
    if not spec.entry_script:
        return ONNX_ENVIRONMENT
    for record in records:
        if record.run_id and components.runs.has(record.run_id):
            run_spec = components.runs.load(record.run_id).spec
            if run_spec:  # an interactive run has none
                return from_json(RunSpec, run_spec).environment
    return EnvironmentSpec()


def onnx_file(models: Models, record: ModelRecord) -> str:
    """Path of the model's ONNX file; empty if it has none or several."""
    paths = [file.path for file in models.files(record.name, record.version) if file.path.endswith(".onnx")]
    if "model.onnx" in paths:
        return "model.onnx"
    return paths[0] if len(paths) == 1 and (record.framework or ONNX).lower() == ONNX else ""
