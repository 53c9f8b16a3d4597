"""Sweeps and the state of their trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from runyard import clock
from runyard.spec.json import from_json, to_json
from runyard.spec.sweep import SweepSpec, Trial
from runyard.store import schema
from runyard.store.database import Database

_sweeps, _trials = schema.sweeps, schema.trials
_SAVE = (
    update(_trials)
    .where(_trials.c.sweep_id == bindparam("parent"), _trials.c.number == bindparam("trial"))
    .values({name: bindparam(name) for name in ("state", "best", "reports", "stopped")})
)


class SweepStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, sweep_id: str, spec: SweepSpec) -> None:
        """Add a sweep; an existing id is left unchanged."""
        with self._database.write() as connection:
            values = {"sweep_id": sweep_id, "spec": to_json(spec), "going": 1, "created_at": clock.now()}
            connection.execute(insert(_sweeps).prefix_with("OR IGNORE"), values)

    def load(self, sweep_id: str) -> SweepSpec | None:
        with self._database.read() as connection:
            spec = connection.execute(select(_sweeps.c.spec).where(_sweeps.c.sweep_id == sweep_id)).scalar()
        return None if spec is None else from_json(SweepSpec, spec)

    def active(self) -> list[str]:
        """Ids of the sweeps that have not ended, oldest first."""
        query = select(_sweeps.c.sweep_id).where(_sweeps.c.going == 1).order_by(_sweeps.c.created_at)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def end(self, sweep_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(update(_sweeps).where(_sweeps.c.sweep_id == sweep_id).values(going=0))

    def of_study(self, key: str) -> list[str]:
        """Ids of the sweeps that have trials of an Optuna study, oldest first."""
        query = select(_sweeps.c.sweep_id).where(_sweeps.c.spec["study"]["key"].as_string() == key)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(_sweeps.c.created_at)).scalars())

    def put_trial(self, sweep_id: str, trial: Trial) -> None:
        """Add a trial, or replace it."""
        with self._database.write() as connection:
            connection.execute(insert(_trials).prefix_with("OR REPLACE"), {"sweep_id": sweep_id, **_columns(trial)})

    def add_trial(self, sweep_id: str, trial: Trial) -> None:
        with self._database.write() as connection:
            connection.execute(insert(_trials), {"sweep_id": sweep_id, **_columns(trial)})

    def save_trials(self, sweep_id: str, trials: list[Trial]) -> None:
        if not trials:
            return
        with self._database.write() as connection:
            connection.execute(
                _SAVE,
                [
                    {
                        "parent": sweep_id,
                        "trial": trial.number,
                        "state": trial.state,
                        "best": trial.best,
                        "reports": trial.reports,
                        "stopped": trial.stopped,
                    }
                    for trial in trials
                ],
            )

    def trials(self, sweep_id: str, numbers: Sequence[int] | None = None) -> list[Trial]:
        """The trials of a sweep, or those of them with the given numbers."""
        names = [field.name for field in fields(Trial)]
        query = select(*(_trials.c[name] for name in names)).where(_trials.c.sweep_id == sweep_id)
        if numbers is not None:
            query = query.where(_trials.c.number.in_(numbers))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_trials.c.number)).all()
        return [Trial(**dict(zip(names, row))) for row in rows]

    def summaries(self) -> list[dict[str, Any]]:
        """Each sweep with the number of its children, newest first."""
        count = (
            select(func.count()).where(_trials.c.sweep_id == _sweeps.c.sweep_id).correlate(_sweeps).scalar_subquery()
        )
        query = select(_sweeps.c.sweep_id, _sweeps.c.created_at, count.label("children"))
        with self._database.read() as connection:
            return [dict(row._mapping) for row in connection.execute(query.order_by(_sweeps.c.created_at.desc()))]


def _columns(trial: Trial) -> dict[str, Any]:
    return {field.name: getattr(trial, field.name) for field in fields(Trial)}
