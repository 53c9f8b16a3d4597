"""Parameter importance: the share of the metric's variance that each parameter explains, by PED-ANOVA."""

from __future__ import annotations

import math
import warnings
from typing import Any

from runyard.spec.sweep import SweepSpec, Trial
from runyard.wire.sweeps import Importance

_MIN_CHILDREN = 8


def importance(spec: SweepSpec, trials: list[Trial]) -> Importance:
    scored = [trial for trial in trials if trial.best is not None]
    shared = [name for name in (scored[0].parameters if scored else ()) if all(name in t.parameters for t in scored)]
    varied = [name for name in shared if len({str(t.parameters[name]) for t in scored}) > 1]
    if len(scored) < _MIN_CHILDREN:
        return Importance({}, f"{_MIN_CHILDREN} children with a result are required, got {len(scored)}")
    if not varied:
        return Importance({}, "no parameter had more than one value")
    if len({trial.best for trial in scored}) == 1:
        return Importance({}, "all children have the same result")

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {name: _distribution([trial.parameters[name] for trial in scored]) for name in varied}
    study = optuna.create_study(direction="maximize")
    for trial in scored:
        values = {name: _value(trial.parameters[name], distributions[name]) for name in varied}
        assert trial.best is not None
        study.add_trial(
            optuna.trial.create_trial(params=values, distributions=distributions, value=spec.sign * trial.best)
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluator is experimental and warns about that
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
        shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return Importance({name: float(value) for name, value in shares.items()})


def _distribution(values: list[Any]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if all(_is_number(value) for value in values):
        return FloatDistribution(float(min(values)), float(max(values)))
    return CategoricalDistribution(sorted({str(value) for value in values}))


def _is_number(value: Any) -> bool:
    """False for values that Optuna cannot compute with; they are treated as categories."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _value(value: Any, distribution: Any) -> Any:
    return float(value) if hasattr(distribution, "low") else str(value)
