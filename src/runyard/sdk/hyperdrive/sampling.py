"""Sampling methods: the selection of hyperparameters for the children of a sweep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

from runyard.errors import HyperDriveConfigException
from runyard.spec.space_checks import MAX_SEED, SpaceError, check_space, validate_count
from runyard.spec.sweep import BAYESIAN, GRID, POPULATION, RANDOM, SOBOL, Population, Sampling


class HyperParameterSampling:
    """Base of the sampling methods.

    Args:
        parameter_space: Parameter expressions by name, such as ``{"--lr": uniform(0.01, 0.1)}``.
        properties: Has no effect.
        seed: Makes the sweep repeatable; the default is a random seed.

    Raises:
        HyperDriveConfigException: The space is not valid for this sampling.
    """

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
        self._seed = None if seed is None else validate_count("seed", seed, 0, MAX_SEED)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.SAMPLING_NAME, "parameter_space": self._parameter_space, "properties": self._properties}

    def _spec(self, seed: int) -> Sampling:
        return Sampling(self.SAMPLING_NAME, self._parameter_space, self._seed if self._seed is not None else seed)


class RandomParameterSampling(HyperParameterSampling):
    """Random values; supports all expressions."""

    SAMPLING_NAME = RANDOM


class GridParameterSampling(HyperParameterSampling):
    """Every combination once; supports only ``choice``."""

    SAMPLING_NAME = GRID

    def __init__(self, parameter_space: dict[str, Any], *, seed: Optional[int] = None) -> None:
        super().__init__(parameter_space, seed=seed)


class BayesianParameterSampling(HyperParameterSampling):
    """Bayesian optimization, which learns from ended children; supports ``choice``, ``uniform`` and ``quniform``."""

    SAMPLING_NAME = BAYESIAN

    def __init__(self, parameter_space: dict[str, Any], *, seed: Optional[int] = None) -> None:
        super().__init__(parameter_space, seed=seed)


class SobolParameterSampling(HyperParameterSampling):
    """A Sobol sequence, which covers the space more evenly than random values."""

    SAMPLING_NAME = SOBOL


class PopulationParameterSampling(HyperParameterSampling):
    """Population-based training.

    Each child continues from the outputs of a child in the previous generation, which it gets as ``--resume-from``.
    After each generation the weakest children are replaced by copies of the best, with perturbed values: 0.8 or 1.2
    times the old one, the next option of a choice, or a new sample.

    Args:
        parameter_space: Parameter expressions by name.
        population_size: Children per generation.
        replaced: Share of children that are replaced after each generation, up to 0.5.
        resample_probability: Probability of a new sample instead of a perturbation.
        seed: Makes the sweep repeatable.
    """

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
        validate_count("population_size", population_size, 2)
        _check_fraction("replaced", replaced, 0.5)
        _check_fraction("resample_probability", resample_probability, 1.0)
        if not replaced:
            raise HyperDriveConfigException("replaced must be above 0: with 0 no member is replaced")
        self._population = Population(population_size, float(replaced), float(resample_probability))

    def _spec(self, seed: int) -> Sampling:
        return replace(super()._spec(seed), population=self._population)


def _check_fraction(name: str, value: Any, maximum: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= maximum:
        raise HyperDriveConfigException(f"{name} must be between 0 and {maximum:g}, got {value!r}")
