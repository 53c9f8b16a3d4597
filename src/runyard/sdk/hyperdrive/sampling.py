"""How the values of children are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import MOST_SEED, SpaceError, check_space, whole
from runyard.spec.sweep import BAYESIAN, GRID, POPULATION, RANDOM, SOBOL, Population, Sampling


class HyperParameterSampling:
    """``seed`` makes a sweep repeatable; without one a sweep gets its own."""

    SAMPLING_NAME = ""

    def __init__(
        self,
        parameter_space: dict[str, Any],
        properties: Optional[dict[str, Any]] = None,
        *,
        seed: Optional[int] = None,
    ) -> None:
        try:
            check_space(parameter_space, self.SAMPLING_NAME)
        except SpaceError as error:
            raise HyperDriveConfigException(str(error), hint=error.hint) from None
        self._parameter_space = dict(parameter_space)
        self._properties = dict(properties or {})
        self._seed = None if seed is None else whole("seed", seed, 0, MOST_SEED)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.SAMPLING_NAME, "parameter_space": self._parameter_space, "properties": self._properties}

    def _spec(self, seed: int) -> Sampling:
        return Sampling(self.SAMPLING_NAME, self._parameter_space, self._seed if self._seed is not None else seed)


class RandomParameterSampling(HyperParameterSampling):
    SAMPLING_NAME = RANDOM


class GridParameterSampling(HyperParameterSampling):
    """Every combination once; all parameters must be a ``choice``."""

    SAMPLING_NAME = GRID

    def __init__(self, parameter_space: dict[str, Any], *, seed: Optional[int] = None) -> None:
        super().__init__(parameter_space, seed=seed)


class BayesianParameterSampling(HyperParameterSampling):
    """Learns from the children that have ended."""

    SAMPLING_NAME = BAYESIAN

    def __init__(self, parameter_space: dict[str, Any], *, seed: Optional[int] = None) -> None:
        super().__init__(parameter_space, seed=seed)


class SobolParameterSampling(HyperParameterSampling):
    """Evenly spread over the whole space: better than chance when few children are to cover it."""

    SAMPLING_NAME = SOBOL


class PopulationParameterSampling(HyperParameterSampling):
    """Population-based training: generations of ``population_size`` children, each going on from the outputs of one of
    the generation before, which it finds by ``--resume-from``. After each generation the weakest, a share of
    ``replaced``, go on from one of the best instead, with values near its own: moved to 0.8 or 1.2 of them, to the next
    option of a choice or, with the probability ``resample_probability``, drawn anew."""

    SAMPLING_NAME = POPULATION

    def __init__(
        self,
        parameter_space: dict[str, Any],
        population_size: int = 8,
        *,
        replaced: float = 0.25,
        resample_probability: float = 0.25,
        seed: Optional[int] = None,
    ) -> None:
        super().__init__(parameter_space, seed=seed)
        whole("population_size", population_size, 2)
        _share("replaced", replaced, 0.5)
        _share("resample_probability", resample_probability, 1.0)
        if not replaced:
            raise HyperDriveConfigException("replaced=0 would replace nobody: each member would only go on")
        self._population = Population(population_size, float(replaced), float(resample_probability))

    def _spec(self, seed: int) -> Sampling:
        return replace(super()._spec(seed), population=self._population)


def _share(name: str, value: Any, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise HyperDriveConfigException(f"{name} must be a number from 0 to {most:g}, not {value!r}")
