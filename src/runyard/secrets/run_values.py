"""Values that a run received in clear and that look like secrets: masked in its specification, sealed in its folder.

The run receives the real values, also in later attempts, after a restart of the yard and when it is run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from runyard.errors import UserErrorException
from runyard.posix.atomic_write import write_bytes
from runyard.secrets.cipher import Cipher
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.redaction import MASK, argument_spans, variable_spans
from runyard.spec.run import RunSpec

_ARGUMENT = "RUNYARD_ARGUMENT_"  # prefix of the variables that carry secret parts of arguments


@dataclass(frozen=True)
class HiddenText:
    """A text with secret parts: ``pieces[0] + values[0] + pieces[1] + …``."""

    pieces: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def masked(self) -> str:
        return MASK.join(self.pieces)

    @property
    def clear(self) -> str:
        return self.join(self.values)

    def join(self, values: Sequence[str]) -> str:
        return "".join(piece + value for piece, value in zip(self.pieces, (*values, "")))


@dataclass(frozen=True)
class RunValues:
    """The secret values of one run, by where they are in its specification."""

    variables: dict[str, HiddenText] = field(default_factory=dict)
    environment: dict[str, HiddenText] = field(default_factory=dict)  # variables of its environment
    arguments: dict[str, HiddenText] = field(default_factory=dict)  # by index, as text

    def __bool__(self) -> bool:
        return bool(self.variables or self.environment or self.arguments)

    @property
    def secrets(self) -> list[str]:
        hidden = (*self.variables.values(), *self.environment.values(), *self.arguments.values())
        return [value for text in hidden for value in text.values]


def protect(spec: Mapping[str, Any]) -> tuple[dict[str, Any], RunValues]:
    """Mask what looks like a secret in a valid specification, and return the values."""
    arguments = list(spec.get("arguments") or ())
    values = RunValues(
        variables=_hide_variables(spec.get("environment_variables")),
        environment=_hide_variables((spec.get("environment") or {}).get("variables")),
        arguments={str(index): _hide(arguments[index], spans) for index, spans in argument_spans(arguments).items()},
    )
    if not values:
        return dict(spec), values
    masked = dict(spec)
    for index, hidden in values.arguments.items():
        arguments[int(index)] = hidden.masked
    if values.arguments:
        masked["arguments"] = arguments
    if values.variables:
        masked["environment_variables"] = _with_masks(masked["environment_variables"], values.variables)
    if values.environment:
        environment = dict(masked["environment"])
        masked["environment"] = {**environment, "variables": _with_masks(environment["variables"], values.environment)}
    return masked, values


def restore(spec: Mapping[str, Any], values: RunValues) -> dict[str, Any]:
    """Put the values of another run back into a specification that was derived from its masked one."""
    if not values:
        return dict(spec)
    restored = dict(spec)
    by_mask = {hidden.masked: hidden.clear for hidden in values.arguments.values()}
    restored["arguments"] = [by_mask.get(argument, argument) for argument in spec.get("arguments") or ()]
    restored["environment_variables"] = _with_values(spec.get("environment_variables"), values.variables)
    environment = dict(spec.get("environment") or {})
    if values.environment:
        restored["environment"] = {
            **environment,
            "variables": _with_values(environment["variables"], values.environment),
        }
    return restored


def reject_masks(spec: Mapping[str, Any]) -> None:
    """Refuse a specification that was copied from a response: the run would receive the mask instead of the value."""
    variables = {
        **((spec.get("environment") or {}).get("variables") or {}),
        **(spec.get("environment_variables") or {}),
    }
    for name, value in variables.items():
        if value == MASK or f":{MASK}@" in value:
            raise UserErrorException(
                f"environment variable {name!r} has a masked value, {value!r}",
                hint="pass the value itself, or store it with `runyard secrets set` and refer to it by name",
            )


def with_references(spec: RunSpec, values: RunValues) -> tuple[RunSpec, dict[str, str]]:
    """Replace secret parts of arguments by variables, which are expanded on the node; return all secret variables."""
    variables = {name: hidden.clear for hidden_by_name in (values.environment, values.variables)
                 for name, hidden in hidden_by_name.items()}  # fmt: skip
    arguments = list(spec.arguments)
    for index, hidden in values.arguments.items():
        names = [f"{_ARGUMENT}{index}_{part}" for part in range(len(hidden.values))]
        variables.update(zip(names, hidden.values))
        arguments[int(index)] = hidden.join([f"${{{name}}}" for name in names])
    return replace(spec, arguments=tuple(arguments)), variables


def write_values(cipher: Cipher, folder: RunFolder, run_id: str, values: RunValues) -> None:
    write_bytes(folder.sealed_values, cipher.seal(json.dumps(to_json(values)), _purpose(run_id)))


def read_values(cipher: Cipher, folder: RunFolder, run_id: str) -> RunValues:
    """Empty if the run has no secret values.

    Raises:
        SecretsUnreadable: The key is missing, or the file was changed.
    """
    try:
        sealed = folder.sealed_values.read_bytes()
    except FileNotFoundError:
        return RunValues()
    return from_json(RunValues, json.loads(cipher.open(sealed, _purpose(run_id))))


def _purpose(run_id: str) -> str:
    return f"the secret values of run {run_id}"


def _hide_variables(variables: Mapping[str, str] | None) -> dict[str, HiddenText]:
    spans = {name: variable_spans(name, value) for name, value in (variables or {}).items()}
    return {name: _hide((variables or {})[name], positions) for name, positions in spans.items() if positions}


def _hide(text: str, spans: Sequence[tuple[int, int]]) -> HiddenText:
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    pieces = tuple(text[start:end] for start, end in zip(starts, ends))
    return HiddenText(pieces, tuple(text[start:end] for start, end in spans))


def _with_masks(variables: Mapping[str, str], hidden: Mapping[str, HiddenText]) -> dict[str, str]:
    return {**variables, **{name: text.masked for name, text in hidden.items()}}


def _with_values(variables: Mapping[str, str] | None, hidden: Mapping[str, HiddenText]) -> dict[str, str]:
    """Only variables that still have the mask: another value was set on purpose."""
    return {
        name: hidden[name].clear if name in hidden and value == hidden[name].masked else value
        for name, value in (variables or {}).items()
    }
