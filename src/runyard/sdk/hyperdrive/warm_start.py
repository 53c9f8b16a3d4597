"""What a sweep takes over from earlier ones: what they found out, and children that are to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import HyperDriveConfigException
from runyard.lifecycle.state import TERMINAL
from runyard.spec.sweep import BAYESIAN, Known, Resumed

if TYPE_CHECKING:
    from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig

_ENDED = frozenset(state.value for state in TERMINAL)
_MOST_SWEEPS, _MOST_CHILDREN = 5, 1000


def known_from(runs: Any, config: HyperDriveConfig) -> tuple[Known, ...]:
    from runyard.sdk.hyperdrive.run import HyperDriveRun

    sweeps = _list_of("resume_from", runs)
    if len(sweeps) > _MOST_SWEEPS:
        raise HyperDriveConfigException(f"resume_from takes at most {_MOST_SWEEPS} sweeps, not {len(sweeps)}")
    known: list[Known] = []
    for sweep in sweeps:
        if not isinstance(sweep, HyperDriveRun):
            raise HyperDriveConfigException(f"resume_from takes sweeps, not {sweep!r}")
        status = sweep.get_status()
        if status not in ("Completed", "Canceled"):
            raise HyperDriveConfigException(
                f"sweep {sweep.id} is {status}: only one that is Completed or Canceled can be resumed from"
            )
        view = sweep._sweep()
        if (view["primary_metric"], view["goal"]) != (config._metric, config._goal):
            raise HyperDriveConfigException(
                f"sweep {sweep.id} was to {view['goal']} {view['primary_metric']!r}, "
                f"and this one is to {config._goal} {config._metric!r}"
            )
        mine = config._sampling.to_json()["parameter_space"]
        if config._sampling.SAMPLING_NAME == BAYESIAN and _plain(view["sampling"]["space"]) != _plain(mine):
            raise HyperDriveConfigException(
                f"sweep {sweep.id} had another parameter space: Bayesian sampling needs the same"
            )
        known += [Known(c["parameters"], c["best"]) for c in view["children"] if c["best"] is not None]
    if len(known) > _MOST_CHILDREN:
        raise HyperDriveConfigException(
            f"the sweeps of resume_from have {len(known)} children together: at most {_MOST_CHILDREN}"
        )
    return tuple(known)


def resumed_children(runs: Any, most: int) -> tuple[Resumed, ...]:
    from runyard.sdk.hyperdrive.run import HyperDriveRun
    from runyard.sdk.run.run import Run

    children = _list_of("resume_child_runs", runs)
    if len(children) > most:
        raise HyperDriveConfigException(f"resume_child_runs has {len(children)} runs, and max_total_runs is {most}")
    resumed, parents = [], set()
    for child in children:
        if not isinstance(child, Run):
            raise HyperDriveConfigException(f"resume_child_runs takes runs, not {child!r}")
        parent = child.parent
        if not isinstance(parent, HyperDriveRun):
            raise HyperDriveConfigException(f"run {child.id} is no child of a sweep")
        status = child.get_status()
        if status not in _ENDED:
            raise HyperDriveConfigException(f"run {child.id} is {status}: only an ended child can be resumed")
        parents.add(parent.id)
        tried = parent.get_hyperparameters()
        if child.id not in tried:  # somebody has opened it below the sweep by child_run()
            raise HyperDriveConfigException(f"run {child.id} has no values to try again: {parent.id} did not start it")
        resumed.append(Resumed(child.id, tried[child.id]))
    if len(parents) > _MOST_SWEEPS:
        raise HyperDriveConfigException(f"resume_child_runs comes from {len(parents)} sweeps: at most {_MOST_SWEEPS}")
    return tuple(resumed)


def _list_of(name: str, runs: Any) -> list[Any]:
    if runs is None:
        return []
    found = list(runs) if isinstance(runs, (list, tuple)) else [runs]
    ids = [getattr(run, "id", run) for run in found]
    twice = sorted({str(one) for one in ids if ids.count(one) > 1})
    if twice:
        raise HyperDriveConfigException(f"{name} has {', '.join(twice)} twice")
    return found


def _plain(space: Any) -> Any:
    """As it is after a journey as JSON."""
    if isinstance(space, dict):
        return {name: _plain(value) for name, value in space.items()}
    return [_plain(value) for value in space] if isinstance(space, (list, tuple)) else space
