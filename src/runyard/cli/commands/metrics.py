"""The `runyard metrics` command."""

from __future__ import annotations

import json
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.formatting import value_text
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.table import print_table
from runyard.client.connection import Connection
from runyard.errors import UserErrorException
from runyard.sdk.core.validation import did_you_mean
from runyard.spec.json import replace_non_finite

app = new_app()


@app.command(cls=Command)
def metrics(
    run: RunArgument,
    name: Annotated[Optional[str], typer.Argument(metavar="NAME", help="Print all values of this metric.")] = None,
    as_json: Json = False,
) -> None:
    """Print the metrics of a run.

    Without NAME: number of values, last, minimum and maximum of each metric. With NAME: all values, one per line.
    """
    connection = Connection()
    run_id = find_run(connection, run)["run_id"]
    values: dict[str, Any] = connection.post("/api/metrics", {"run_ids": [run_id], "name": name})[run_id]
    if name is not None and name not in values:
        names = list(connection.get(f"/api/runs/{run_id}/summary")["metrics"])
        raise UserErrorException(
            f"run {run_id} has no metric {name!r}",
            hint=f"{did_you_mean(name, names)}available metrics: {', '.join(names[:10])}"
            if names
            else "it logged no metrics",
        )
    if as_json:
        print_json(values)
    elif name is not None:
        _print_values(values[name])
    elif not values:
        print_status(f"run {run_id} logged no metrics")
    else:
        # not the last of the values: they are in the order in which the yard received them
        last: dict[str, Any] = connection.get(f"/api/runs/{run_id}/summary")["metrics"]
        print_table(
            ("METRIC", "VALUES", "LAST", "MIN", "MAX"),
            [(key, *_summary(value, last.get(key))) for key, value in values.items()],
            right=("VALUES", "LAST", "MIN", "MAX"),
        )


def _print_values(value: Any) -> None:
    if isinstance(value, dict) and not _is_document(value):
        columns = {name: item if isinstance(item, list) else [item] for name, item in value.items()}
        print_table(list(columns), [[str(item) for item in row] for row in zip(*columns.values())])
        return
    for item in value if isinstance(value, list) else [value]:
        print(json.dumps(replace_non_finite(item)) if isinstance(item, dict) else item)


def _summary(value: Any, last: Any) -> tuple[str, str, str, str]:
    if isinstance(value, dict) and not _is_document(value):
        longest = max((len(item) if isinstance(item, list) else 1 for item in value.values()), default=0)
        return f"{longest}", f"columns {', '.join(value)}", "", ""
    values = value if isinstance(value, list) else [value]
    numbers = [item for item in values if isinstance(item, (int, float)) and item == item]
    if isinstance(values[-1], dict):
        return str(len(values)), str(values[-1].get("schema_type", "histogram")).replace("_", " "), "", ""
    if not numbers:
        return str(len(values)), value_text(" ".join(str(last).split())), "", ""
    return str(len(values)), value_text(last), value_text(min(numbers)), value_text(max(numbers))


def _is_document(value: Any) -> bool:
    """True for structured values such as confusion matrices and histograms, whose keys are not columns."""
    return "schema_type" in value or set(value) == {"bin_edges", "bin_counts"}
