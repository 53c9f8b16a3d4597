"""The secrets of one run: masked when it is submitted, opened when it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from runyard.errors import RunyardException
from runyard.launch.order import WorkOrder
from runyard.launch.variables import TRACKING_TOKEN
from runyard.orchestrator.components import Components
from runyard.secrets.run_values import (
    RunValues,
    protect,
    read_values,
    reject_masks,
    restore,
    with_references,
    write_values,
)
from runyard.spec.json import from_json
from runyard.spec.names import RUN_ID
from runyard.spec.redaction import MASK
from runyard.spec.run import RunSpec
from runyard.store.runs import RunRecord

_ALWAYS_SHOWN = "PATH"  # of the machine, but useful in the description of a process


@dataclass(frozen=True)
class RunSecrets:
    spec: RunSpec  # secret parts of arguments are references to variables
    variables: dict[str, str]  # all secret variables of the run


def protect_spec(
    components: Components, spec: Mapping[str, Any], origins: Sequence[str | None] = ()
) -> tuple[dict[str, Any], RunValues]:
    """Mask secrets in a valid specification, and return their values.

    Args:
        components: The yard.
        spec: The specification.
        origins: Runs whose masked specification it may have been made of: the one to run again, or the sweep.
    """
    for run_id in origins:
        if run_id and RUN_ID.fullmatch(run_id):
            spec = restore(spec, read_values(components.vault.cipher, components.folder(run_id), run_id))
    reject_masks(spec)
    return protect(spec)


def store_values(components: Components, run_id: str, values: RunValues) -> None:
    """Seal the values in the folder of a new run; a repeated submission must not change those of the first."""
    if values and not components.runs.has(run_id):
        write_values(components.vault.cipher, components.folder(run_id), run_id, values)


def open_secrets(components: Components, record: RunRecord) -> RunSecrets:
    """The values for the start of a run.

    Raises:
        UserErrorException: A secret was deleted after the run was submitted.
        SecretsUnreadable: The key is missing, or the sealed values were changed.
    """
    values = read_values(components.vault.cipher, components.folder(record.run_id), record.run_id)
    spec, variables = with_references(from_json(RunSpec, record.spec), values)
    named = components.vault.named.values(spec.secrets.values())
    variables.update({variable: named[name] for variable, name in spec.secrets.items()})
    components.vault.remember([*values.secrets, *named.values()])
    return RunSecrets(spec, variables)


def redact(components: Components, record: RunRecord, text: str) -> str:
    """Mask the secrets of a run in a text that its process sent."""
    if record.spec:  # those of a run that an earlier yard started are not in memory
        with suppress(RunyardException):
            open_secrets(components, record)
    return components.vault.redact(text)


def masked_secrets(spec: RunSpec) -> RunSecrets:
    """For a description of what would be started."""
    return RunSecrets(spec, dict.fromkeys(spec.secrets, MASK))


def split_private(
    order: WorkOrder, own: Mapping[str, str], inherited: Mapping[str, str], run_secrets: RunSecrets
) -> WorkOrder:
    """Take variables out of the order that must not be written: secrets, and the environment of the yard's starter."""
    secret = {*run_secrets.variables, TRACKING_TOKEN} & set(order.variables)
    machine = {
        name
        for name, value in order.variables.items()
        if name not in own and name != _ALWAYS_SHOWN and inherited.get(name) == value
    }
    private = {name: order.variables[name] for name in (*machine, *secret)}
    public = {name: value for name, value in order.variables.items() if name not in private}
    return replace(order, variables=public, private=private, secret_variables=tuple(sorted(secret)))


def refill_private(components: Components, record: RunRecord, order: WorkOrder) -> WorkOrder:
    """The order of a run that an earlier yard wrote, with the private variables that it must be started with."""
    inherited = components.target(record).compute.inherited_variables()
    private = {**inherited, **open_secrets(components, record).variables}
    if TRACKING_TOKEN in order.secret_variables:
        tracking = components.address(record.run_id, True)
        private[TRACKING_TOKEN] = tracking[1] if tracking is not None else ""
    return replace(order, private={name: private[name] for name in private if name not in order.variables})
