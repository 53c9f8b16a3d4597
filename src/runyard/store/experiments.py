"""Experiments by name, each with a title: its name for MLflow clients, which is arbitrary text. Both are unique."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from runyard import clock
from runyard.spec.names import to_experiment_name
from runyard.store import schema
from runyard.store.database import Database
from runyard.store.documents import EXPERIMENT, Document, change_document, put_document
from runyard.store.run_labels import set_labels, touch
from runyard.store.schema import experiments as table

# Built once: every submitted run looks for its experiment, and constructing a statement takes longer than executing it.
_BY_NAME = select(table).where(table.c.name == bindparam("name"))
_BY_TITLE = select(table).where(table.c.title == bindparam("title"))


@dataclass(frozen=True)
class ExperimentRecord:
    name: str
    title: str
    created_at: float


class ExperimentStore:
    """Every method that writes looks and writes in one transaction; the table's constraints refuse a duplicate."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ExperimentRecord]:
        """All experiments, oldest first."""
        with self._database.read() as connection:
            query = select(table).order_by(table.c.created_at, table.c.name)
            return [_record(row) for row in connection.execute(query)]

    def find(self, name: str) -> ExperimentRecord | None:
        with self._database.read() as connection:
            return _find(connection, name)

    def find_by_title(self, title: str) -> ExperimentRecord | None:
        with self._database.read() as connection:
            row = connection.execute(_BY_TITLE, {"title": title}).first()
        return None if row is None else _record(row)

    def add(self, name: str, title: str | None = None) -> ExperimentRecord:
        """Add an experiment by name; an existing one is returned unchanged."""
        with self._database.write() as connection:
            return ensure_experiment(connection, name, clock.now(), title)

    def create(self, title: str, content: dict[str, Any]) -> ExperimentRecord | None:
        """Create an experiment by title, with the content of its document; None if the title is taken."""
        with self._database.write() as connection:
            if _is_taken(connection, title):
                return None
            record = ExperimentRecord(_free_name(connection, title), title, clock.now())
            connection.execute(insert(table).values(**vars(record)))
            put_document(connection, EXPERIMENT, Document(record.name, record.name, content, record.created_at))
        return record

    def set_stage(self, name: str, stage: str, run_tag: str, run_value: str | None) -> list[str]:
        """Change the lifecycle stage of an experiment and all its runs, in one transaction.

        Args:
            name: Name of the experiment.
            stage: Stored in its document.
            run_tag: The key of a tag of its runs.
            run_value: Value of the tag; None removes it.

        Returns:
            The ids of the runs.
        """
        of_experiment = select(schema.runs.c.run_id).where(schema.runs.c.experiment == name)
        tags = schema.tags.c
        with self._database.write() as connection:
            ensure_experiment(connection, name, clock.now())

            def apply(content: dict[str, Any]) -> dict[str, Any]:
                return {**content, "stage": stage, "changed_at": clock.now()}

            change_document(connection, EXPERIMENT, name, name, apply)
            connection.execute(delete(schema.tags).where(tags.key == run_tag, tags.run_id.in_(of_experiment)))
            run_ids = list(connection.execute(of_experiment).scalars())
            for run_id in run_ids:
                touch(connection, run_id)
                if run_value is not None:
                    set_labels(connection, schema.tags, run_id, {run_tag: run_value})
        return run_ids

    def rename(self, name: str, title: str) -> bool:
        """Change the title; False if another experiment has it."""
        with self._database.write() as connection:
            owner = connection.execute(_BY_TITLE, {"title": title}).first()
            if owner is not None:
                return bool(owner.name == name)
            connection.execute(update(table).where(table.c.name == name).values(title=title))
        return True


def ensure_experiment(
    connection: Connection, name: str, created_at: float, title: str | None = None
) -> ExperimentRecord:
    """Add an experiment in the caller's transaction, unless it exists.

    If its title is the one of another experiment, which an MLflow client has renamed, it gets a number: ``digits (2)``.
    """
    existing = _find(connection, name)
    if existing is not None:
        return existing
    record = ExperimentRecord(name, _free_title(connection, title or name), created_at)
    connection.execute(insert(table).values(**vars(record)))
    return record


def _free_title(connection: Connection, title: str) -> str:
    numbered = (f"{title} ({number})" for number in count(2))
    return title if not _is_taken(connection, title) else next(t for t in numbered if not _is_taken(connection, t))


def _find(connection: Connection, name: str) -> ExperimentRecord | None:
    row = connection.execute(_BY_NAME, {"name": name}).first()
    return None if row is None else _record(row)


def _is_taken(connection: Connection, title: str) -> bool:
    return connection.execute(_BY_TITLE, {"title": title}).first() is not None


def _free_name(connection: Connection, title: str) -> str:
    # the name may belong to an experiment that was renamed since
    names = (to_experiment_name(title + "-" * number) for number in count())
    return next(name for name in names if _find(connection, name) is None)


def _record(row: Any) -> ExperimentRecord:
    return ExperimentRecord(row.name, row.title, row.created_at)
