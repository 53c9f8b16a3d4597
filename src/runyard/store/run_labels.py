"""Labels of runs: tags, properties and parameters. Also marks runs as changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, literal, select, union_all, update
from sqlalchemy.dialects.sqlite import insert as upsert

from runyard.errors import RunNotFound, UserErrorException
from runyard.spec.redaction import mask_label
from runyard.store import schema
from runyard.store.database import Database, batches

Labels = dict[str, "str | None"]
_runs = schema.runs

_CHANGED = insert(schema.changes).prefix_with("OR REPLACE")
_SET_PARAM = insert(schema.params).prefix_with("OR REPLACE")
_SET_LABEL = {
    table: (new := upsert(table)).on_conflict_do_update(
        index_elements=["run_id", "key"], set_={"value": new.excluded.value}
    )
    for table in (schema.tags, schema.properties)
}
_LABELS = union_all(
    *(
        select(literal(index), table.c.run_id, table.c.key, table.c.value).where(
            table.c.run_id.in_(bindparam("run_ids", expanding=True))
        )
        for index, table in enumerate((schema.tags, schema.properties))
    )
)


class RunLabels:
    def __init__(self, database: Database) -> None:
        self._database = database

    def labels(self, run_ids: Sequence[str]) -> dict[str, tuple[Labels, Labels]]:
        """The tags and the properties of each run."""
        labels: dict[str, tuple[Labels, Labels]] = {run_id: ({}, {}) for run_id in run_ids}
        with self._database.read() as connection:
            for index, run_id, key, value in connection.execute(_LABELS, {"run_ids": list(run_ids)}):
                labels[run_id][index][key] = value
        return labels

    def set_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Set parameters in addition to those from the script's arguments; existing ones are replaced."""
        with self._database.write() as connection:
            touch(connection, run_id)
            set_params(connection, run_id, params)

    def add_params(self, run_id: str, params: Mapping[str, str], replaceable: Mapping[str, str]) -> None:
        """Add parameters. They cannot be overwritten: a different value for an existing key is an error.

        Args:
            run_id: The run.
            params: The new parameters.
            replaceable: Parameters that may be overwritten as long as they have these values.
        """
        table = schema.params
        with self._database.write() as connection:
            touch(connection, run_id)  # takes the write lock, so that concurrent requests are checked one by one
            for keys in batches(params):
                query = select(table.c.key, table.c.value).where(table.c.run_id == run_id, table.c.key.in_(keys))
                for key, value in connection.execute(query):
                    if value not in (mask_label(key, params[key]), mask_label(key, replaceable.get(key))):
                        raise UserErrorException(
                            f"parameter {key!r} of run {run_id} is already {value!r} and cannot be set to "
                            f"{mask_label(key, params[key])!r}",
                            hint="parameters cannot be overwritten; use a tag for values that change",
                        )
            set_params(connection, run_id, params)

    def params(self, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        params: dict[str, dict[str, str]] = {run_id: {} for run_id in run_ids}
        table = schema.params
        with self._database.read() as connection:
            for batch in batches(run_ids):
                for run_id, key, value in connection.execute(select(table).where(table.c.run_id.in_(batch))):
                    params[run_id][key] = value
        return params

    def set_tags(self, run_id: str, tags: Mapping[str, str | None], remove: Sequence[str] = ()) -> None:
        with self._database.write() as connection:
            touch(connection, run_id)
            set_labels(connection, schema.tags, run_id, tags)
            for key in remove:
                connection.execute(delete(schema.tags).where(schema.tags.c.run_id == run_id, schema.tags.c.key == key))

    def change_tag(self, run_id: str, key: str, change: Callable[[str | None], str]) -> None:
        """Replace a tag by the result of ``change``, which gets the old value or None, in one transaction."""
        table = schema.tags
        with self._database.write() as connection:
            touch(connection, run_id)
            query = select(table.c.value).where(table.c.run_id == run_id, table.c.key == key)
            set_labels(connection, table, run_id, {key: change(connection.execute(query).scalar())})

    def remove_tag(self, run_id: str, key: str) -> bool:
        """Remove a tag; False if the run does not have it."""
        table = schema.tags
        with self._database.write() as connection:
            touch(connection, run_id)
            return bool(connection.execute(delete(table).where(table.c.run_id == run_id, table.c.key == key)).rowcount)

    def add_properties(self, run_id: str, properties: Mapping[str, str | None]) -> None:
        """Add properties. They cannot be overwritten: a different value for an existing key is an error."""
        table = schema.properties
        with self._database.write() as connection:
            touch(connection, run_id)
            query = select(table).where(table.c.run_id == run_id, table.c.key.in_(list(properties)))
            for row in connection.execute(query):
                if row.value != mask_label(row.key, properties[row.key]):
                    raise UserErrorException(
                        f"property {row.key!r} of run {run_id} is already {row.value!r} and cannot be set to "
                        f"{properties[row.key]!r}",
                        hint="properties cannot be overwritten; use a tag for values that change",
                    )
            set_labels(connection, table, run_id, properties)


def record_change(connection: Connection, run_id: str) -> None:
    """Mark a run as changed for clients that watch the run table. Call it in the transaction of the change."""
    connection.execute(_CHANGED, {"run_id": run_id})


def touch(connection: Connection, run_id: str) -> None:
    changed = connection.execute(
        update(_runs).where(_runs.c.run_id == run_id).values(version=_runs.c.version + 1)
    ).rowcount
    if not changed:
        raise not_found(connection, run_id)
    record_change(connection, run_id)


def set_labels(connection: Connection, table: Any, run_id: str, labels: Mapping[str, str | None]) -> None:
    if labels:
        rows = [{"run_id": run_id, "key": key, "value": mask_label(key, value)} for key, value in labels.items()]
        connection.execute(_SET_LABEL[table], rows)


def set_params(connection: Connection, run_id: str, params: Mapping[str, str]) -> None:
    if params:
        connection.execute(
            _SET_PARAM,
            [{"run_id": run_id, "key": key, "value": mask_label(key, value)} for key, value in params.items()],
        )


def not_found(connection: Connection, run_id: str) -> RunNotFound:
    similar = select(_runs.c.run_id).where(_runs.c.run_id.startswith(run_id[:12], autoescape=True))
    matches = [row.run_id for row in connection.execute(similar.order_by(_runs.c.number.desc()).limit(3))]
    hint = f"did you mean {', '.join(matches)}?" if matches and run_id else "list runs with `runyard runs`"
    return RunNotFound(f"no run {run_id!r} in this yard", hint=hint, run_id=run_id)
