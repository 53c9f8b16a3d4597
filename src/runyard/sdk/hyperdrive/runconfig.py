"""HyperDriveConfig: the configuration of a sweep."""

from __future__ import annotations

import enum
import logging
import secrets
import warnings
from typing import TYPE_CHECKING, Any, Optional

from runyard.errors import HyperDriveConfigException
from runyard.sdk.core import validation
from runyard.sdk.hyperdrive.policy import EarlyTerminationPolicy, NoTerminationPolicy
from runyard.sdk.hyperdrive.sampling import HyperParameterSampling, PopulationParameterSampling
from runyard.sdk.hyperdrive.warm_start import as_list, known_results, resumed_children
from runyard.spec.json import to_json
from runyard.spec.space import grid_size
from runyard.spec.space_checks import MAX_COUNT, MAX_SOBOL_COUNT, validate_count
from runyard.spec.sweep import BAYESIAN, GRID, MAXIMIZE, MINIMIZE, SOBOL, SweepSpec

if TYPE_CHECKING:
    from runyard.sdk.core.experiment import Experiment
    from runyard.sdk.hyperdrive.run import HyperDriveRun

log = logging.getLogger("runyard")
_WEEK_MINUTES = 10080


class PrimaryMetricGoal(enum.Enum):
    """Maximize or minimize the primary metric."""

    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"

    @staticmethod
    def from_str(goal: str) -> PrimaryMetricGoal:
        try:
            return PrimaryMetricGoal[str(goal).upper()]
        except KeyError:
            raise HyperDriveConfigException(f"the goal must be MAXIMIZE or MINIMIZE, got {goal!r}") from None


class InvalidGoal(HyperDriveConfigException, AttributeError):
    """Also an AttributeError, which the SDK v1 raised for this mistake."""


class HyperDriveConfig:
    """A sweep: many runs of one script with different hyperparameters. Submit it like an estimator.

    Args:
        hyperparameter_sampling: The sampling, with the search space.
        primary_metric_name: The metric to optimize.
        primary_metric_goal: PrimaryMetricGoal.MAXIMIZE or MINIMIZE.
        max_total_runs: Number of children.
        max_concurrent_runs: Number of children at the same time; the default is ``max_total_runs``.
        max_duration_minutes: Cancel the sweep after this time; the default is a week.
        policy: Early termination policy.
        estimator: The estimator to vary; excludes ``run_config``.
        run_config: The ScriptRunConfig to vary; excludes ``estimator``.
        resume_from: Up to 5 ended sweeps whose results the sampling learns from.
        resume_child_runs: Ended children to start again with their hyperparameters and outputs.
        pipeline: Not supported.
        debug_flag: Has no effect.
        custom_run_id: Id of the sweep.
        max_failures_in_a_row: End the sweep after this many consecutive failures.

    Raises:
        HyperDriveConfigException: A value or a combination is not valid.
    """

    def __init__(
        self,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal,
        max_total_runs: int,
        max_concurrent_runs: Optional[int] = None,
        max_duration_minutes: int = _WEEK_MINUTES,
        policy: Optional[EarlyTerminationPolicy] = None,
        estimator: Any = None,
        run_config: Any = None,
        resume_from: Any = None,
        resume_child_runs: Any = None,
        pipeline: Any = None,
        debug_flag: Any = None,
        custom_run_id: Optional[str] = None,
        *,
        max_failures_in_a_row: int = 10,
    ) -> None:
        if pipeline is not None:
            raise HyperDriveConfigException(
                "sweeps over pipelines are not supported", hint="give an estimator, or run_config=ScriptRunConfig(…)"
            )
        if (estimator is None) == (run_config is None):
            raise HyperDriveConfigException("give exactly one of estimator and run_config (a ScriptRunConfig)")
        for name, value, expected in (
            ("estimator", estimator, "an estimator such as Estimator(…)"),
            ("run_config", run_config, "a ScriptRunConfig"),
        ):
            if value is not None and not callable(getattr(value, "_submission", None)):
                raise validation.invalid(name, value, expected, error=HyperDriveConfigException)
        for name, value, kind in (
            ("hyperparameter_sampling", hyperparameter_sampling, HyperParameterSampling),
            ("policy", policy or NoTerminationPolicy(), EarlyTerminationPolicy),
        ):
            if not isinstance(value, kind):
                raise HyperDriveConfigException(f"{name} must be a {kind.__name__}, got {value!r}")
        if not isinstance(primary_metric_name, str) or not primary_metric_name:
            raise HyperDriveConfigException(f"primary_metric_name must be text, got {primary_metric_name!r}")
        if not isinstance(primary_metric_goal, PrimaryMetricGoal):
            raise InvalidGoal(
                "primary_metric_goal must be PrimaryMetricGoal.MAXIMIZE or PrimaryMetricGoal.MINIMIZE, "
                f"got {primary_metric_goal!r}"
            )
        if isinstance(hyperparameter_sampling, PopulationParameterSampling) and policy is not None and policy._spec():
            raise HyperDriveConfigException(
                f"population sampling excludes an early termination policy, got {type(policy).__name__}",
                hint="the weakest members are replaced after each generation",
            )
        self._goal = MAXIMIZE if primary_metric_goal is PrimaryMetricGoal.MAXIMIZE else MINIMIZE
        maximum = MAX_SOBOL_COUNT if hyperparameter_sampling.SAMPLING_NAME == SOBOL else MAX_COUNT
        self._total = validate_count("max_total_runs", max_total_runs, maximum=maximum)
        self._concurrent = (
            self._total if max_concurrent_runs is None else validate_count("max_concurrent_runs", max_concurrent_runs)
        )
        self._minutes = validate_count("max_duration_minutes", max_duration_minutes)
        if self._minutes > _WEEK_MINUTES:
            warnings.warn(f"max_duration_minutes={self._minutes} is more than a week", stacklevel=2)
        self._max_failures = validate_count("max_failures_in_a_row", max_failures_in_a_row)
        self._sampling, self._metric, self._policy = hyperparameter_sampling, primary_metric_name, policy
        self._estimator, self._run_config = estimator, run_config
        self._resume_from, self._resume_children = resume_from, resume_child_runs
        self._run_id = custom_run_id
        self._known = known_results(resume_from, self)
        self._resumed = resumed_children(resume_child_runs, self._total)
        for warning in self._warnings():
            warnings.warn(warning, stacklevel=2)

    @property
    def estimator(self) -> Any:
        return self._estimator

    @property
    def run_config(self) -> Any:
        return self._run_config

    @property
    def pipeline(self) -> None:
        return None

    @property
    def source_directory(self) -> str:
        return str(self._child.source_directory)

    @property
    def _child(self) -> Any:
        return self._estimator if self._estimator is not None else self._run_config

    def _warnings(self) -> list[str]:
        """Return warnings about settings that are probably not intended."""
        texts = []
        space, total = self._sampling._parameter_space, self._total
        if self._sampling.SAMPLING_NAME == GRID:
            size = grid_size(space)
            if size + len(self._resumed) > total:
                texts.append(f"the grid has {size} points and max_total_runs is {total}: the rest is not tried")
        if self._sampling.SAMPLING_NAME == BAYESIAN:
            if total < 20 * len(space):
                texts.append(
                    f"Bayesian sampling needs about 20 runs for each parameter: {20 * len(space)}, "
                    f"and max_total_runs is {total}"
                )
            if self._concurrent > 20:
                texts.append(
                    f"Bayesian sampling learns from ended children: {self._concurrent} concurrent runs teach it little"
                )
        if isinstance(self._sampling, PopulationParameterSampling):
            size = self._sampling._population.size
            if total <= size:
                texts.append(
                    f"max_total_runs is {total} and population_size {size}: there is no second generation, "
                    "so no member continues from the outputs of another"
                )
        return texts

    def _start(self, experiment: Experiment, tags: Any, **kwargs: Any) -> HyperDriveRun:
        from runyard.sdk.hyperdrive.run import HyperDriveRun
        from runyard.sdk.training.submit import resolve_spec, submit_sweep

        submission = self._child._submission(**kwargs)
        self._warn_overridden(submission.spec.arguments)
        spec = SweepSpec(
            sampling=self._sampling._spec(secrets.randbelow(2**31)),
            primary_metric=self._metric,
            goal=self._goal,
            max_total_runs=self._total,
            max_concurrent_runs=self._concurrent,
            child=to_json(resolve_spec(experiment, submission)),
            max_duration_minutes=self._minutes,
            policy=self._policy._spec() if self._policy is not None else None,
            resumed=self._resumed,
            known=self._known,
            resume_from=tuple(run.id for run in as_list(self._resume_from)),
            most_failures_in_a_row=self._max_failures,
        )
        view = submit_sweep(experiment, submission.source_directory, spec, tags, self._warnings(), self._run_id)
        return HyperDriveRun(experiment, view["run_id"], hyperdrive_config=self, _view=view)

    def _warn_overridden(self, arguments: tuple[str, ...]) -> None:
        varied = {name.lstrip("-") for name in self._sampling._parameter_space}
        parameter = "script_params" if self._estimator is not None else "arguments"
        for argument in arguments:
            name = argument.lstrip("-").partition("=")[0]
            if argument.startswith("-") and name in varied:
                log.warning("the sweep varies %s: the value in %s is not used", argument, parameter)


class HyperDriveRunConfig(HyperDriveConfig):
    """The name of HyperDriveConfig in the first releases of the SDK."""

    def __init__(
        self,
        estimator: Any,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal,
        max_total_runs: int,
        max_concurrent_runs: Optional[int] = None,
        max_duration_minutes: int = _WEEK_MINUTES,
        policy: Optional[EarlyTerminationPolicy] = None,
    ) -> None:
        log.warning("HyperDriveRunConfig is the old name of HyperDriveConfig")
        super().__init__(
            hyperparameter_sampling,
            primary_metric_name,
            primary_metric_goal,
            max_total_runs,
            max_concurrent_runs,
            max_duration_minutes,
            policy,
            estimator=estimator,
        )
