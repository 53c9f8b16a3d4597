"""The `runyard lineage` command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.follow import print_status
from runyard.cli.run_lookup import NEWEST, Json, find_run, print_json
from runyard.client.connection import Connection
from runyard.errors import RunNotFound, UserErrorException

app = new_app()
_KINDS = ("dataset", "model", "run")
_ORDER = ("data", "dataset", "run", "model", "service")
_RELATIONS = {
    "led": "parent of ",
    "used": "used as {name} by ",
    "wrote": "wrote {name}: ",
    "saved": "registered ",
    "registered": "produced ",
    "named": "declared as {name} by ",
    "made of": "converted to ",
    "served": "served by ",
}


@app.command(cls=Command)
def lineage(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="Dataset or model (mnist, mnist:2), or run (id, @last).")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="dataset, model or run, if the name is ambiguous.")] = "",
    as_json: Json = False,
) -> None:
    """Show lineage: which data, runs, models and services depend on each other."""
    graph = _find_graph(Connection(), what, kind)
    if as_json:
        print_json(graph)
        return
    nodes = {node["id"]: node for node in graph["nodes"]}
    outgoing: dict[str, list[dict[str, Any]]] = {}
    for edge in graph["edges"]:
        outgoing.setdefault(edge["source"], []).append(edge)
    targets = {edge["target"] for edge in graph["edges"]}
    roots = sorted((n for n in nodes if n not in targets), key=lambda n: (_ORDER.index(nodes[n]["kind"]), n))
    printed: set[str] = set()
    for root in roots or graph["start"]:
        _print(root, nodes, outgoing, set(graph["start"]), printed, "")
    if graph["truncated"]:
        print("… truncated")
    if not graph["edges"]:
        is_run = nodes[graph["start"][0]]["kind"] == "run"
        print_status("no links" + (": the run used no registered data and registered no model" if is_run else ""))


def _find_graph(connection: Connection, what: str, requested_kind: str) -> dict[str, Any]:
    """The lineage of a dataset, model or run, tried in this order unless a kind is requested."""
    if requested_kind and requested_kind not in _KINDS:
        raise UserErrorException(f"unknown kind {requested_kind!r}", hint=f"available kinds: {', '.join(_KINDS)}")
    for kind in [requested_kind] if requested_kind else _KINDS:
        try:
            name = find_run(connection, what)["run_id"] if kind == "run" else what
            graph: dict[str, Any] = connection.get("/api/lineage", **{kind: name})
            if not requested_kind and kind == "run" and what not in (name, *NEWEST):
                # the name of a deleted dataset is often the beginning of a run id
                print_status(f"no dataset or model {what!r}; showing the run {name}")
            return graph
        except UserErrorException as error:
            if requested_kind or (kind == "run" and not isinstance(error, RunNotFound)):
                raise
    raise UserErrorException(
        f"no dataset, model or run {what!r}",
        hint="list them with `runyard datasets list`, `runyard models list` and `runyard runs`",
    )


def _print(
    node_id: str,
    nodes: dict[str, dict[str, Any]],
    outgoing: dict[str, list[dict[str, Any]]],
    start: set[str],
    printed: set[str],
    indent: str,
    relation: str = "",
    note: str = "",
) -> None:
    node = nodes[node_id]
    is_repeated = node_id in printed and node_id in outgoing
    mark = "  ←" if node_id in start else ""
    reference = "  (see above)" if is_repeated else ""
    print(f"{indent}{relation}{node['kind']} {node['label']}{_detail(node)}{note}{reference}{mark}")
    if is_repeated:
        return
    printed.add(node_id)
    for edge in outgoing.get(node_id, []):
        relation = _RELATIONS[edge["kind"]].format(name=edge["name"] or "data")
        note = ", data differs from the registered version" if edge["same"] is False else ""
        _print(edge["target"], nodes, outgoing, start, printed, indent + "  ", relation, note)


def _detail(node: dict[str, Any]) -> str:
    for key in ("status", "state", "stage"):
        if node.get(key) and node[key] != "none":
            return f"  {node[key]}"
    return f"  {node['digest'][:12]}" if node["kind"] == "dataset" and node.get("digest") else ""
