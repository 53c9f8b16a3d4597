"""Checks and conversions of the reports of an Optuna study, which come from users' processes."""

from __future__ import annotations

import math
import re
from typing import Any

from runyard.context.values import validate_name, validate_step
from runyard.errors import UserErrorException
from runyard.spec.sweep import MAXIMIZE, MINIMIZE
from runyard.wire.sweeps import StudyReport, StudyTrial

_KEY = re.compile(r"[0-9a-f]{32}")
_STATES = ("running", "complete", "pruned", "failed")
_MAX_NUMBER = 2**31
_MAX_TIME_S = 2.0**33


def check(report: StudyReport) -> None:
    """Refuse a report that cannot be recorded, before anything is written."""
    if not _KEY.fullmatch(report.key):
        raise UserErrorException(f"the key of a study must be 32 hexadecimal digits, got {report.key!r}")
    if not report.name:
        raise UserErrorException("a study needs a name")
    _check_text("the name of the study", report.name)
    if not report.metrics or len(report.metrics) != len(report.directions):
        raise UserErrorException(
            f"a study needs one direction per metric, got {len(report.directions)} for {len(report.metrics)}"
        )
    if len(set(report.metrics)) != len(report.metrics):
        raise UserErrorException(f"the metrics of a study must differ, got {', '.join(report.metrics)}")
    for name, direction in zip(report.metrics, report.directions):
        validate_name(name)
        if direction not in (MAXIMIZE, MINIMIZE):
            raise UserErrorException(f"direction must be {MAXIMIZE!r} or {MINIMIZE!r}, got {direction!r}")
    for trial in report.trials:
        _check_trial(trial, len(report.metrics))


def parameters(trial: StudyTrial) -> dict[str, Any]:
    """The parameters as JSON scalars: numbers that JSON does not have, and other values, become text."""
    return {name: value if _is_scalar(value) else str(value) for name, value in trial.parameters.items()}


def tags(trial: StudyTrial) -> dict[str, str | None]:
    return dict(trial.attributes)


def pruned_at(trial: StudyTrial) -> str:
    return f"at step {trial.steps[-1]}" if trial.steps else "before its first report"


def _check_trial(trial: StudyTrial, objectives: int) -> None:
    label = f"trial {trial.number}"
    if not 0 <= trial.number < _MAX_NUMBER:
        raise UserErrorException(f"the number of a trial must be between 0 and {_MAX_NUMBER - 1}, got {trial.number}")
    if trial.state not in _STATES:
        raise UserErrorException(f"{label}: state must be one of {', '.join(_STATES)}, got {trial.state!r}")
    if trial.state == "complete" and len(trial.values) != objectives:
        raise UserErrorException(f"{label}: expected {objectives} values, got {len(trial.values)}")
    if len(trial.steps) != len(trial.intermediate):
        raise UserErrorException(
            f"{label}: expected one intermediate value per step, got {len(trial.intermediate)} for {len(trial.steps)}"
        )
    for step in trial.steps:
        validate_step(step)
    for key, value in (*trial.parameters.items(), *trial.attributes.items()):
        _check_text(label, key, str(value))
    _check_text(label, trial.message)
    for moment in (trial.started_at, trial.ended_at):
        if moment is not None and not 0 <= moment < _MAX_TIME_S:
            raise UserErrorException(f"{label}: times must be in seconds since 1970, got {moment!r}")


def _check_text(label: str, *texts: str) -> None:
    """Refuse text that the database cannot store; a trial must not be recorded in part."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserErrorException(f"{label}: {text!r} is not valid text") from None


def _is_scalar(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))
