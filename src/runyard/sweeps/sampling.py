"""The samplings: by chance, all of a grid, evenly spread, learning from what went before, and by generations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from runyard.spec.space import Point, draw, grid_points, is_expression, place_of_option, random_point
from runyard.spec.sweep import BAYESIAN, GRID, POPULATION, RANDOM, SOBOL, Known, Sampling
from runyard.sweeps.population import PopulationSampler
from runyard.sweeps.sampler import Sampler

if TYPE_CHECKING:
    import optuna


_SOBOL_POINTS = 64  # are made at once


def sampler_of(sampling: Sampling, most: int, known: tuple[Known, ...], sign: float, resumed: int = 0) -> Sampler:
    """The first ``resumed`` children have their values from elsewhere."""
    made: dict[str, Callable[[], Sampler]] = {
        BAYESIAN: lambda: _Bayesian(sampling, known, sign, resumed),
        POPULATION: lambda: PopulationSampler(sampling, most),
        RANDOM: lambda: _Random(sampling),
        GRID: lambda: _Grid(sampling, most, resumed),
        SOBOL: lambda: _Sobol(sampling, most),
    }
    return made[sampling.name]()


class _Random(Sampler):
    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling

    def propose(self, number: int) -> Point:
        return random_point(self._sampling.space, f"{self._sampling.seed}/{number}")


class _Grid(Sampler):
    def __init__(self, sampling: Sampling, most: int, resumed: int) -> None:
        self._rest, self._points = islice(grid_points(sampling.space), most), list[Point]()
        self._resumed = resumed

    def propose(self, number: int) -> Point | None:
        place = number - self._resumed  # resumed children are no points of the grid: none is left out for them
        # as far as they are asked for: all of a grid of millions would fill the memory at once
        self._points.extend(islice(self._rest, max(0, place + 1 - len(self._points))))
        return self._points[place] if place < len(self._points) else None


class _Sobol(Sampler):
    """Evenly spread, also in many dimensions at once: better than chance when few children are to cover the space."""

    def __init__(self, sampling: Sampling, most: int) -> None:
        from scipy.stats import qmc

        self._space, self._most = sampling.space, most
        self._dimension = {name: place for place, name in enumerate(_names(sampling.space))}
        self._sequence = qmc.Sobol(len(self._dimension), seed=sampling.seed)
        self._points: list[Any] = []

    def propose(self, number: int) -> Point | None:
        if number >= self._most:
            return None
        while number >= len(self._points):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the first n of 2^k points are as even as n can be
                self._points.extend(self._sequence.random(_SOBOL_POINTS))
        place = self._points[number]
        return draw(self._space, lambda name: float(place[self._dimension[name]]))


class _Bayesian(Sampler):
    """Optuna's tree-structured Parzen estimators, asked and told. A child that still runs counts as a poor one, so that
    several at a time do not all try the same spot."""

    def __init__(self, sampling: Sampling, known: tuple[Known, ...], sign: float, resumed: int) -> None:
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
        for found in known:
            trial = self._replay(found.parameters)
            self._study.tell(trial, sign * found.value)

    def propose(self, number: int) -> Point:
        trial = self._trials[number] = self._study.ask()
        return _suggested(trial, self._space)

    def took(self, number: int, point: Point) -> None:
        if number >= self._resumed:  # those may have values of another space
            self._trials[number] = self._replay(point)

    def learn(self, number: int, value: float | None, completed: bool = True) -> None:
        import optuna

        trial = self._trials.pop(number, None)
        if trial is None:
            return
        if value is None or value != value:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, value)

    def _replay(self, point: Point) -> optuna.trial.Trial:
        self._study.enqueue_trial(_places(self._space, point))
        trial = self._study.ask()
        _suggested(trial, self._space)
        return trial


def _suggested(trial: optuna.trial.Trial, space: Mapping[str, Any], path: str = "") -> Point:
    point: Point = {}
    for name, expression in space.items():
        if not is_expression(expression):
            point[name] = expression
            continue
        kind, arguments = expression
        key = f"{path}{name}"
        if kind == "choice":
            # by its place: Optuna would take True and 1 for the same option
            place = trial.suggest_categorical(key, list(range(len(arguments[0]))))
            option = arguments[0][place]
            if isinstance(option, Mapping):
                point.update(_suggested(trial, option, f"{key}[{place}]."))
            else:
                point[name] = option
        elif kind == "quniform":
            low, high, q = arguments
            point[name] = trial.suggest_int(key, -(-int(low) // q) * q, int(high) // q * q, step=q)
        else:
            point[name] = trial.suggest_float(key, *arguments)
    return point


def _places(space: Mapping[str, Any], point: Point, path: str = "") -> dict[str, Any]:
    """What :func:`_suggested` would have been told for this point."""
    places: dict[str, Any] = {}
    for name, expression in space.items():
        if not is_expression(expression):
            continue
        key = f"{path}{name}"
        if expression[0] != "choice":
            if name in point:
                places[key] = point[name]
            continue
        place = place_of_option(name, expression, point)
        if place is None:
            continue
        places[key], option = place, expression[1][0][place]
        if isinstance(option, Mapping):
            places.update(_places(option, point, f"{key}[{place}]."))
    return places


def _names(space: Mapping[str, Any]) -> Iterator[str]:
    """All that may be drawn, those of nested spaces too, each once."""
    seen: set[str] = set()
    stack = [space]
    while stack:
        for name, expression in stack.pop().items():
            if not is_expression(expression):
                continue
            if name not in seen:
                seen.add(name)
                yield name
            if expression[0] == "choice":
                stack += [option for option in expression[1][0] if isinstance(option, Mapping)]
