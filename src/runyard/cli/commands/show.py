"""The `runyard show` command."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.data_text import data_lines
from runyard.cli.formatting import age_text, count_text, short_duration, size_text, value_text
from runyard.cli.leaderboard import is_sweep, print_leaderboard
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.run_summary import environment_text, outcome
from runyard.client.connection import Connection
from runyard.clock import duration_text

app = new_app()
_STATES = ("NotStarted", "Preparing", "Data", "Queued", "Starting", "Running", "CancelRequested", "Finalizing")
_MAX_CHILDREN = 1000
_LABELS = {"NotStarted": "snapshot", "CancelRequested": "stopping"}


@app.command(cls=Command)
def show(
    run: RunArgument,
    all: Annotated[bool, typer.Option("--all", help="Sweep: show all children, not only the best.")] = False,
    as_json: Json = False,
) -> None:
    """Show a run: its command, why it ended, and its time budget."""
    connection = Connection()
    view = find_run(connection, run)
    summary = connection.get(f"/api/runs/{view['run_id']}/summary")
    sweep = connection.get(f"/api/sweeps/{view['run_id']}") if is_sweep(view) else None
    if as_json:
        sweep_part = {} if sweep is None else {"sweep": sweep}
        print_json({**view, **summary, "time_budget": time_budget(view, clock.now()), **sweep_part})
        return
    print(f"{view['run_id']}  {outcome(view)}")
    traceback = (view["end"] or {}).get("traceback", "")
    if traceback:
        print("\n" + "\n".join(f"    {line}" for line in traceback.rstrip().splitlines()))
    print()
    for name, text in _facts(view, summary, data_lines(connection, view), _children(connection, view)):
        print(f"{name:<13}{text}")
    if sweep is not None:
        print()
        print_leaderboard(sweep, show_all=all)


def time_budget(view: dict[str, Any], now: float) -> dict[str, float]:
    """Seconds spent in each state, in order; the current state of an unfinished run lasts until now."""
    times = sorted((at, state) for state, at in {"NotStarted": view["created_at"], **view["timeline"]}.items())
    ends = [at for at, _ in times[1:]] + [view["ended_at"] or now]
    spent: dict[str, float] = {}
    for (at, state), end in zip(times, ends):
        if state in _STATES:
            label = _LABELS.get(state, state.lower())
            spent[label] = spent.get(label, 0) + max(end - at, 0)
    return spent


def _children(connection: Connection, view: dict[str, Any]) -> str:
    if is_sweep(view):  # shown in the leaderboard
        return ""
    page = connection.get("/api/runs", parent=view["run_id"], include_children=True, limit=_MAX_CHILDREN)
    if not page["runs"]:
        return ""
    count = f"{len(page['runs']):,}" if page["next"] is None else f"more than {_MAX_CHILDREN:,}"
    return f"{count}: runyard runs --all -e {view['experiment']}"


def _facts(view: dict[str, Any], summary: dict[str, Any], data: list[str], children: str) -> list[tuple[str, str]]:
    now = clock.now()
    facts = [
        ("experiment", f"{view['experiment']}" + (f", child of {view['parent_id']}" if view["parent_id"] else "")),
        (
            "submitted",
            f"{_local(view['created_at'])} ({_ago(now - view['created_at'])}) by {view['submitted_by'] or 'unknown'}",
        ),
        ("children", children),
        ("time", ", ".join(f"{label} {short_duration(spent)}" for label, spent in time_budget(view, now).items())),
    ]
    spec = view["spec"]
    if spec:
        facts.append(("script", " ".join([spec["script"], *spec["arguments"]])))
        facts.append(
            (
                "environment",
                environment_text(spec) + (f" ({view['environment_key']})" if view["environment_key"] else ""),
            )
        )
        facts.append(("resources", _resources(spec)))
        variables = {**spec["environment"]["variables"], **spec["environment_variables"]}
        if variables:
            facts.append(("variables", ", ".join(sorted(variables))))  # only names: values may be secret
        if spec.get("secrets"):
            facts.append(("secrets", ", ".join(f"{key}={name}" for key, name in sorted(spec["secrets"].items()))))
    facts += [("" if index else "data", line) for index, line in enumerate(data)]
    original = view["properties"].get("runyard.rerun_of")
    if original:
        facts.append(("rerun of", original))
    if view["snapshot_id"]:
        facts.append(("code", f"snapshot {view['snapshot_id'][:12]}"))
    for attempt in view["attempts"]:
        facts.append((f"attempt {attempt['number']}", f"{attempt['reason']}: {' '.join(attempt['message'].split())}"))
    facts += [("warning", " ".join(warning.split())) for warning in view["warnings"]]
    unused = (spec or {}).get("no_effect")
    if unused:
        facts.append(("no effect", f"{count_text(len(unused), 'argument')}: runyard explain {view['run_id']}"))
    if view["tags"]:
        facts.append(
            ("tags", ", ".join(key if value is None else f"{key}={value}" for key, value in view["tags"].items()))
        )
    for index, (name, value) in enumerate(summary["metrics"].items()):
        facts.append(("" if index else "metrics", f"{name} {value_text(value)}"))
    files = summary["files"]
    if files:
        total = sum(file["size"] for file in files)
        facts.append(("files", f"{count_text(len(files), 'file')}, {size_text(total)}: runyard files {view['run_id']}"))
    facts.append(("folder", view["folder"]))
    remaining = (view["end"] or {}).get("processes_left")
    if remaining:
        facts.append(("processes", f"{remaining} could not be stopped"))
    return [(name, text) for name, text in facts if text]


def _resources(spec: dict[str, Any]) -> str:
    resources = spec["resources"]
    parts = [count_text(resources["cpus_per_process"] * resources["processes_per_node"], "core")]
    if resources["gpus_per_process"]:
        parts.append(count_text(resources["gpus_per_process"] * resources["processes_per_node"], "GPU"))
    if resources["memory_gb"]:
        parts.append(f"{resources['memory_gb']:g} GB")
    if spec["max_run_duration_seconds"]:
        parts.append(f"time limit {duration_text(spec['max_run_duration_seconds'])}")
    if spec.get("max_attempts", 1) > 1:
        parts.append(f"up to {spec['max_attempts']} attempts")
    return ", ".join(parts) + f" on {spec['target']}"


def _local(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _ago(seconds: float) -> str:
    age = age_text(seconds)
    return age if age == "now" else f"{age} ago"
