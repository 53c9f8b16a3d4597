"""The `runyard explain` command."""

from __future__ import annotations

from typing import Any

from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import Json, RunArgument, find_run, print_json
from runyard.cli.run_summary import environment_text, outcome
from runyard.client.connection import Connection
from runyard.errors import ComputeTargetException

app = new_app()


@app.command(cls=Command)
def explain(run: RunArgument, as_json: Json = False) -> None:
    """Explain how a run's arguments were interpreted, and which had no effect."""
    connection = Connection()
    view = find_run(connection, run)
    spec = _spec(connection, view)
    target = _target(connection, view["target"] or (spec or {}).get("target"))
    notes = [*(spec or {}).get("no_effect", []), *((target or {}).get("configuration", {}).get("no_effect") or [])]
    if as_json:
        print_json({"run_id": view["run_id"], "target": target, "warnings": view["warnings"], "no_effect": notes})
        return
    print(f"{view['run_id']}  {outcome(view)}\n")
    for name, text in _facts(view, spec, target):
        print(f"{name:<13}{text}")
    if not notes:
        print("no effect    none: every argument was used")
        return
    print("\narguments without effect:")
    for note in notes:
        argument = f"({note['argument']}={note['value']})" if note["argument"] else ""
        print(f"  {note['owner']}{argument}\n      {note['why']}")


def _spec(connection: Connection, view: dict[str, Any]) -> dict[str, Any] | None:
    """The run's spec; for a sweep, that of its newest child."""
    if view["type"] == "hyperdrive":
        children = connection.get("/api/runs", parent=view["run_id"], include_children=True, limit=1)["runs"]
        return children[0]["spec"] if children else None
    spec: dict[str, Any] | None = view["spec"]
    return spec


def _target(connection: Connection, name: str | None) -> dict[str, Any] | None:
    if not name:
        return None
    try:
        view: dict[str, Any] = connection.get(f"/api/computes/{name}")
    except ComputeTargetException:  # it has been removed
        return None
    partition = view["status"].get("partition")  # only for Slurm
    return {"partition": partition, **{key: view[key] for key in ("name", "kind", "configuration")}}


def _facts(view: dict[str, Any], spec: dict[str, Any] | None, target: dict[str, Any] | None) -> list[tuple[str, str]]:
    facts = []
    if spec:
        suffix = " (newest child)" if view["type"] == "hyperdrive" else ""
        facts.append(("script", " ".join([spec["script"], *spec["arguments"]]) + suffix))
        name = spec["environment"]["name"]
        prefix = "" if name in ("", "default-environment") else f"{name}: "
        facts.append(("environment", prefix + environment_text(spec)))
        if spec["communicator"] != "None":
            counts = spec["resources"]
            facts.append(
                (
                    "processes",
                    f"{counts['processes_per_node']} on each of {counts['nodes']} nodes by {spec['launch']['kind']} "
                    f"(requested as {spec['framework']}, {spec['communicator']})",
                )
            )
    elif view["type"] is None:
        facts.append(("script", "none: an interactive run"))
    if target:
        facts.append(("target", _target_text(target)))
    return facts + [("warning", " ".join(warning.split())) for warning in view["warnings"]]


def _target_text(target: dict[str, Any]) -> str:
    configuration = target["configuration"]
    if target["kind"] == "Local":
        return "local: the yard's machine"
    size, partition = configuration.get("vm_size"), target["partition"]
    label = f", vm_size {size} (label only)" if size and not partition else ""
    label += f", Slurm partition {partition}" if partition else ""
    nodes = f", up to {configuration['max_nodes']} nodes" if "max_nodes" in configuration else ""
    return f"{target['name']}: {target['kind']}{nodes}{label}"
