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
_WORDS = {
    "led": "led ",
    "used": "used as {name} by ",
    "wrote": "wrote, as {name}, ",
    "saved": "registered ",
    "registered": "made ",
    "named": "named for {name} by ",
    "made of": "turned into ",
    "served": "served by ",
}


@app.command(cls=Command)
def lineage(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="A dataset or a model (mnist, mnist:2), or a run (its id, @last).")
    ],
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="dataset, model or run, where the name is that of several.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Show what came of what: data, runs, models, services.

    The runs that used the data, the models that these registered, and the services that serve those.
    """
    found = _found(Connection(), what, kind)
    if as_json:
        print_json(found)
        return
    nodes = {node["id"]: node for node in found["nodes"]}
    below: dict[str, list[dict[str, Any]]] = {}
    for edge in found["edges"]:
        below.setdefault(edge["source"], []).append(edge)
    reached = {edge["target"] for edge in found["edges"]}
    tops = sorted((n for n in nodes if n not in reached), key=lambda n: (_ORDER.index(nodes[n]["kind"]), n))
    shown: set[str] = set()
    for top in tops or found["start"]:
        _print(top, nodes, below, set(found["start"]), shown, "")
    if found["truncated"]:
        print("… and more than is shown here")
    if not found["edges"]:
        only = nodes[found["start"][0]]["kind"] == "run"
        print_status(
            "nothing is linked with it" + (": it used no registered data and registered no model" if only else " yet")
        )


def _found(connection: Connection, what: str, wanted: str) -> dict[str, Any]:
    """A name is tried as what it can be: first a dataset's, then a model's, then a run's."""
    if wanted and wanted not in _KINDS:
        raise UserErrorException(f"there is no kind {wanted!r}", hint=f"kinds: {', '.join(_KINDS)}")
    for kind in [wanted] if wanted else _KINDS:
        try:
            asked = find_run(connection, what)["run_id"] if kind == "run" else what
            found: dict[str, Any] = connection.get("/api/lineage", **{kind: asked})
            if not wanted and kind == "run" and what not in (asked, *NEWEST):
                # the name of a dataset that is gone is often how a run's id begins: nobody takes the one for the other
                print_status(f"no dataset and no model is named {what!r}; the run {asked} is shown")
            return found
        except UserErrorException as error:
            if wanted or (kind == "run" and not isinstance(error, RunNotFound)):
                raise
    raise UserErrorException(
        f"there is no dataset, model or run {what!r}",
        hint="`runyard datasets list`, `runyard models list` and `runyard runs` show what there is",
    )


def _print(
    node_id: str,
    nodes: dict[str, dict[str, Any]],
    below: dict[str, list[dict[str, Any]]],
    start: set[str],
    shown: set[str],
    indent: str,
    how: str = "",
    differs: str = "",
) -> None:
    node = nodes[node_id]
    again = node_id in shown and node_id in below
    mark = "  ←" if node_id in start else ""
    see = "  (see above)" if again else ""
    print(f"{indent}{how}{node['kind']} {node['label']}{_about(node)}{differs}{see}{mark}")
    if again:
        return
    shown.add(node_id)
    for edge in below.get(node_id, []):
        how = _WORDS[edge["kind"]].format(name=edge["name"] or "data")
        other = ", with other data than is registered" if edge["same"] is False else ""
        _print(edge["target"], nodes, below, start, shown, indent + "  ", how, other)


def _about(node: dict[str, Any]) -> str:
    for key in ("status", "state", "stage"):
        if node.get(key) and node[key] != "none":
            return f"  {node[key]}"
    return f"  {node['digest'][:12]}" if node["kind"] == "dataset" and node.get("digest") else ""
