// Links and labels of lineage nodes and edges.

import { datasetHref, datastoreHref, modelHref, runHref, serviceHref } from "../router/routes";
import type { LineageEdge, LineageNode } from "./api";

/** The page of a node; null if its object was deleted. */
export function nodeHref(node: LineageNode): string | null {
  if (node.kind === "run") return node.run_id ? runHref(node.run_id) : null;
  if (node.kind === "model") return node.name ? modelHref(node.name, node.version) : null;
  if (node.kind === "service") return node.name ? serviceHref(node.name) : null;
  if (node.kind === "dataset") return node.dataset_id ? datasetHref(node) : null;
  const [store, ...path] = node.label.split("/");
  return datastoreHref(store ?? "", path.join("/").replace(/\/+$/, ""));
}

/** "used as digits (mount), matches the registered version" */
export function edgeLabel({ kind, name, mode, same }: LineageEdge): string {
  const as = kind === "used" && name ? ` as ${name}` : kind === "named" && name ? ` for ${name}` : "";
  const how = kind === "used" && mode ? ` (${mode})` : "";
  const match = same === null ? "" : same ? ", matches the registered version" : ", differs from the registered version";
  return `${kind}${as}${how}${match}`;
}
