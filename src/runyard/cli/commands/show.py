from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from runyard import clock
from runyard.cli.command import Command, new_app
from runyard.cli.data_text import data_lines
from runyard.cli.formatting import age_text, count_text, short_duration, size_text, value_text
from runyard.cli.leaderboard import print_leaderboard
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.run_summary import environment_text, outcome
from runyard.client.connection import Connection
from runyard.clock import duration_text

app = new_app()
_STATES = ("NotStarted", "Preparing", "Data", "Queued", "Starting", "Running", "CancelRequested", "Finalizing")
_COUNTED = 1000
_WORDS = {"NotStarted": "snapshot", "CancelRequested": "stopping"}


@app.command(cls=Command)
def show(
    run: RunArgument,
    whole: Annotated[bool, typer.Option("--all", help="Of a sweep: all children, not only the best.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a run is, why it ended and where its time went."""
    connection = Connection()
    view = find_run(connection, run)
    summary = connection.get(f"/api/runs/{view['run_id']}/summary")
    sweep = connection.get(f"/api/sweeps/{view['run_id']}") if view["type"] == "hyperdrive" else None
    if as_json:
        swept = {} if sweep is None else {"sweep": sweep}
        print_json({**view, **summary, "time_budget": budget(view, clock.now()), **swept})
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
        print_leaderboard(sweep, whole=whole)


def budget(view: dict[str, Any], now: float) -> dict[str, float]:
    """Seconds in each state that the run went through, in order; the last of an unfinished run lasts until now."""
    times = sorted((at, state) for state, at in {"NotStarted": view["created_at"], **view["timeline"]}.items())
    ends = [at for at, _ in times[1:]] + [view["ended_at"] or now]
    spent: dict[str, float] = {}
    for (at, state), end in zip(times, ends):
        if state in _STATES:
            word = _WORDS.get(state, state.lower())
            spent[word] = spent.get(word, 0) + max(end - at, 0)
    return spent


def _children(connection: Connection, view: dict[str, Any]) -> str:
    if view["type"] == "hyperdrive":  # they stand in its table
        return ""
    found = connection.get("/api/runs", parent=view["run_id"], include_children=True, limit=_COUNTED)
    if not found["runs"]:
        return ""
    count = f"{len(found['runs']):,}" if found["next"] is None else f"more than {_COUNTED:,}"
    return f"{count}: runyard runs --all -e {view['experiment']}"


def _facts(view: dict[str, Any], summary: dict[str, Any], data: list[str], children: str) -> list[tuple[str, str]]:
    now = clock.now()
    found = [
        ("experiment", f"{view['experiment']}" + (f", child of {view['parent_id']}" if view["parent_id"] else "")),
        (
            "submitted",
            f"{_local(view['created_at'])} ({_ago(now - view['created_at'])}) by {view['submitted_by'] or 'nobody'}",
        ),
        ("children", children),
        ("time", ", ".join(f"{word} {short_duration(spent)}" for word, spent in budget(view, now).items())),
    ]
    spec = view["spec"]
    if spec:
        found.append(("script", " ".join([spec["script"], *spec["arguments"]])))
        found.append(
            (
                "environment",
                environment_text(spec) + (f" ({view['environment_key']})" if view["environment_key"] else ""),
            )
        )
        found.append(("needs", _needs(spec)))
        variables = {**spec["environment"]["variables"], **spec["environment_variables"]}
        if variables:
            found.append(("variables", ", ".join(sorted(variables))))  # names only: a value may be a password
    found += [("" if place else "data", line) for place, line in enumerate(data)]
    again = view["properties"].get("runyard.rerun_of")
    if again:
        found.append(("rerun of", again))
    if view["snapshot_id"]:
        found.append(("code", f"snapshot {view['snapshot_id'][:12]}"))
    for one in view["attempts"]:
        found.append((f"attempt {one['number']}", f"{one['reason']}: {' '.join(one['message'].split())}"))
    found += [("warning", " ".join(warning.split())) for warning in view["warnings"]]
    told = (spec or {}).get("no_effect")
    if told:
        found.append(("no effect", f"{count_text(len(told), 'argument')}: runyard explain {view['run_id']}"))
    if view["tags"]:
        found.append(
            ("tags", ", ".join(key if value is None else f"{key}={value}" for key, value in view["tags"].items()))
        )
    for place, (name, value) in enumerate(summary["metrics"].items()):
        found.append(("" if place else "metrics", f"{name} {value_text(value)}"))
    files = summary["files"]
    if files:
        total = sum(file["size"] for file in files)
        found.append(("files", f"{count_text(len(files), 'file')}, {size_text(total)}: runyard files {view['run_id']}"))
    found.append(("folder", view["folder"]))
    left = (view["end"] or {}).get("processes_left")
    if left:
        found.append(("left", f"{count_text(left, 'process')} could not be stopped"))
    return [(name, text) for name, text in found if text]


def _needs(spec: dict[str, Any]) -> str:
    wanted = spec["resources"]
    parts = [count_text(wanted["cpus_per_process"] * wanted["processes_per_node"], "core")]
    if wanted["gpus_per_process"]:
        parts.append(count_text(wanted["gpus_per_process"] * wanted["processes_per_node"], "GPU"))
    if wanted["memory_gb"]:
        parts.append(f"{wanted['memory_gb']:g} GB")
    if spec["max_run_duration_seconds"]:
        parts.append(f"at most {duration_text(spec['max_run_duration_seconds'])}")
    if spec.get("max_attempts", 1) > 1:
        parts.append(f"up to {spec['max_attempts']} attempts")
    return ", ".join(parts) + f" on {spec['target']}"


def _local(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _ago(seconds: float) -> str:
    age = age_text(seconds)
    return age if age == "now" else f"{age} ago"
