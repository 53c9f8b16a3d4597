"""Warm start: results of earlier sweeps, and children to resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import HyperDriveConfigException
from runyard.spec.names import TERMINAL_STATES
from runyard.spec.sweep import BAYESIAN, Observation, ResumedChild

if TYPE_CHECKING:
    from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig

_MAX_SWEEPS, _MAX_CHILDREN = 5, 1000


def known_results(runs: Any, config: HyperDriveConfig) -> tuple[Observation, ...]:
    from runyard.sdk.hyperdrive.run import HyperDriveRun

    sweeps = _list_of("resume_from", runs)
    if len(sweeps) > _MAX_SWEEPS:
        raise HyperDriveConfigException(f"resume_from must be at most {_MAX_SWEEPS} sweeps, got {len(sweeps)}")
    results: list[Observation] = []
    for sweep in sweeps:
        if not isinstance(sweep, HyperDriveRun):
            raise HyperDriveConfigException(f"resume_from must be sweeps, got {sweep!r}")
        status = sweep.get_status()
        if status not in ("Completed", "Canceled"):
            raise HyperDriveConfigException(
                f"sweep {sweep.id} is {status}: only a Completed or Canceled sweep can be resumed"
            )
        view = sweep._sweep()
        if (view["primary_metric"], view["goal"]) != (config._metric, config._goal):
            raise HyperDriveConfigException(
                f"the goal of sweep {sweep.id} is to {view['goal']} {view['primary_metric']!r}, "
                f"and that of this one to {config._goal} {config._metric!r}"
            )
        space = config._sampling.to_json()["parameter_space"]
        if config._sampling.SAMPLING_NAME == BAYESIAN and _plain(view["sampling"]["space"]) != _plain(space):
            raise HyperDriveConfigException(
                f"sweep {sweep.id} has a different parameter space: Bayesian sampling needs the same one"
            )
        results += [Observation(c["parameters"], c["best"]) for c in view["children"] if c["best"] is not None]
    if len(results) > _MAX_CHILDREN:
        raise HyperDriveConfigException(
            f"the sweeps in resume_from have {len(results)} children; the maximum is {_MAX_CHILDREN}"
        )
    return tuple(results)


def resumed_children(runs: Any, max_total_runs: int) -> tuple[ResumedChild, ...]:
    from runyard.sdk.hyperdrive.run import HyperDriveRun
    from runyard.sdk.run.run import Run

    children = _list_of("resume_child_runs", runs)
    if len(children) > max_total_runs:
        raise HyperDriveConfigException(
            f"resume_child_runs has {len(children)} runs, and max_total_runs is {max_total_runs}"
        )
    resumed, parents = [], set()
    for child in children:
        if not isinstance(child, Run):
            raise HyperDriveConfigException(f"resume_child_runs must be runs, got {child!r}")
        parent = child.parent
        if not isinstance(parent, HyperDriveRun):
            raise HyperDriveConfigException(f"run {child.id} is not a child of a sweep")
        status = child.get_status()
        if status not in TERMINAL_STATES:
            raise HyperDriveConfigException(f"run {child.id} is {status}: only an ended child can be resumed")
        parents.add(parent.id)
        hyperparameters = parent.get_hyperparameters()
        if child.id not in hyperparameters:  # it was created by sweep.child_run()
            raise HyperDriveConfigException(
                f"run {child.id} has no hyperparameters: sweep {parent.id} did not start it"
            )
        resumed.append(ResumedChild(child.id, hyperparameters[child.id]))
    if len(parents) > _MAX_SWEEPS:
        raise HyperDriveConfigException(
            f"resume_child_runs must be from at most {_MAX_SWEEPS} sweeps, got {len(parents)}"
        )
    return tuple(resumed)


def _list_of(name: str, runs: Any) -> list[Any]:
    items = as_list(runs)
    ids = [getattr(run, "id", run) for run in items]
    duplicates = sorted({str(run_id) for run_id in ids if ids.count(run_id) > 1})
    if duplicates:
        raise HyperDriveConfigException(f"{name} contains {', '.join(duplicates)} twice")
    return items


def _plain(space: Any) -> Any:
    """Convert tuples to lists, as JSON does."""
    if isinstance(space, dict):
        return {name: _plain(value) for name, value in space.items()}
    return [_plain(value) for value in space] if isinstance(space, (list, tuple)) else space


def as_list(runs: Any) -> list[Any]:
    if runs is None:
        return []
    return list(runs) if isinstance(runs, (list, tuple)) else [runs]
