"""Samplers: random, grid, Sobol sequence, Bayesian (TPE) and population-based."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from runyard.spec.space import (
    Point,
    draw,
    grid_points,
    is_expression,
    option_index,
    quantile_of,
    random_point,
    value_at,
)
from runyard.spec.sweep import BAYESIAN, GRID, POPULATION, RANDOM, SOBOL, Observation, Sampling
from runyard.sweeps.population import PopulationSampler
from runyard.sweeps.sampler import Sampler

if TYPE_CHECKING:
    import optuna


_SOBOL_BATCH = 64
_OPTUNA_EXPRESSIONS = ("quniform", "randint", "uniform")


def create_sampler(
    sampling: Sampling, max_children: int, observations: tuple[Observation, ...], sign: float, resumed: int = 0
) -> Sampler:
    """Create the sampler of a sweep whose first ``resumed`` children are resumed from other sweeps."""
    factories: dict[str, Callable[[], Sampler]] = {
        BAYESIAN: lambda: _Bayesian(sampling, observations, sign, resumed),
        POPULATION: lambda: PopulationSampler(sampling, max_children),
        RANDOM: lambda: _Random(sampling),
        GRID: lambda: _Grid(sampling, max_children, resumed),
        SOBOL: lambda: _Sobol(sampling, max_children),
    }
    return factories[sampling.name]()


class _Random(Sampler):
    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling

    def ask(self, number: int) -> Point:
        return random_point(self._sampling.space, f"{self._sampling.seed}/{number}")


class _Grid(Sampler):
    def __init__(self, sampling: Sampling, max_children: int, resumed: int) -> None:
        self._rest, self._points = islice(grid_points(sampling.space), max_children), list[Point]()
        self._resumed = resumed

    def ask(self, number: int) -> Point | None:
        index = number - self._resumed  # resumed children are not grid points, so no grid point is skipped for them
        # generated on demand: a grid of millions of points would fill the memory
        self._points.extend(islice(self._rest, max(0, index + 1 - len(self._points))))
        return self._points[index] if index < len(self._points) else None


class _Sobol(Sampler):
    """Low-discrepancy points: covers the space better than random points when there are few children."""

    def __init__(self, sampling: Sampling, max_children: int) -> None:
        from scipy.stats import qmc

        self._space, self._max_children = sampling.space, max_children
        self._dimension = {name: index for index, name in enumerate(_names(sampling.space))}
        self._sequence = qmc.Sobol(len(self._dimension), seed=sampling.seed)
        self._points: list[Any] = []

    def ask(self, number: int) -> Point | None:
        if number >= self._max_children:
            return None
        while number >= len(self._points):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # scipy warns if the number of points is not a power of 2
                self._points.extend(self._sequence.random(_SOBOL_BATCH))
        coordinates = self._points[number]
        return draw(self._space, lambda name: float(coordinates[self._dimension[name]]))


class _Bayesian(Sampler):
    """Optuna's tree-structured Parzen estimator. A running child counts as a poor one (``constant_liar``), so that
    concurrent children do not all explore the same region."""

    def __init__(self, sampling: Sampling, observations: tuple[Observation, ...], sign: float, resumed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._resumed = sampling.space, resumed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=sampling.seed, multivariate=True, group=True, constant_liar=True, n_startup_trials=8
            )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._trials: dict[int, optuna.trial.Trial] = {}
        for observation in observations:
            trial = self._replay(observation.parameters)
            self._study.tell(trial, sign * observation.value)

    def ask(self, number: int) -> Point:
        trial = self._trials[number] = self._study.ask()
        return _suggest(trial, self._space)

    def restore(self, number: int, point: Point) -> None:
        if number >= self._resumed:  # resumed children may have values of another space
            self._trials[number] = self._replay(point)

    def tell(self, number: int, value: float | None, completed: bool = True) -> None:
        import optuna

        trial = self._trials.pop(number, None)
        if trial is None:
            return
        if value is None or value != value:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, value)

    def _replay(self, point: Point) -> optuna.trial.Trial:
        self._study.enqueue_trial(_optuna_values(self._space, point))
        trial = self._study.ask()
        _suggest(trial, self._space)
        return trial


def _suggest(trial: optuna.trial.Trial, space: Mapping[str, Any], path: str = "") -> Point:
    point: Point = {}
    for name, expression in space.items():
        if not is_expression(expression):
            point[name] = expression
            continue
        kind, arguments = expression
        key = f"{path}{name}"
        if kind == "choice":
            # by index: Optuna treats True and 1 as the same option
            index = trial.suggest_categorical(key, list(range(len(arguments[0]))))
            option = arguments[0][index]
            if isinstance(option, Mapping):
                point.update(_suggest(trial, option, f"{key}[{index}]."))
            else:
                point[name] = option
        elif kind == "quniform":
            low, high, q = arguments
            point[name] = trial.suggest_int(key, math.ceil(low / q) * q, math.floor(high / q) * q, step=q)
        elif kind == "randint":
            point[name] = trial.suggest_int(key, 0, arguments[0] - 1)
        elif kind == "uniform":
            point[name] = trial.suggest_float(key, *arguments)
        else:  # Optuna does not have this distribution, and samples the quantile instead
            point[name] = value_at(expression, trial.suggest_float(key, 0.0, 1.0))
    return point


def _optuna_values(space: Mapping[str, Any], point: Point, path: str = "") -> dict[str, Any]:
    """The values with which :func:`_suggest` returns this point."""
    values: dict[str, Any] = {}
    for name, expression in space.items():
        if not is_expression(expression):
            continue
        key = f"{path}{name}"
        if expression[0] != "choice":
            value = point.get(name)
            if isinstance(value, (int, float)):  # a resumed child may have a value of any type
                is_native = expression[0] in _OPTUNA_EXPRESSIONS
                values[key] = value if is_native else quantile_of(expression, value)
            continue
        index = option_index(name, expression, point)
        if index is None:
            continue
        values[key], option = index, expression[1][0][index]
        if isinstance(option, Mapping):
            values.update(_optuna_values(option, point, f"{key}[{index}]."))
    return values


def _names(space: Mapping[str, Any]) -> Iterator[str]:
    """Names of all parameters, including those of nested spaces, without duplicates."""
    names: set[str] = set()
    stack = [space]
    while stack:
        for name, expression in stack.pop().items():
            if not is_expression(expression):
                continue
            if name not in names:
                names.add(name)
                yield name
            if expression[0] == "choice":
                stack += [option for option in expression[1][0] if isinstance(option, Mapping)]
