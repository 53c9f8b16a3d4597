// What of a lineage touches one run. Pure.

import type { DatasetPage, Use } from "../data/api";
import type { Lineage, LineageEdge, LineageNode } from "./api";

export interface Linked {
  used: { node: LineageNode; edge: LineageEdge }[];
  wrote: { node: LineageNode; edge: LineageEdge }[];
  models: { node: LineageNode; services: LineageNode[] }[];
}

export function linked(lineage: Lineage, runId: string): Linked {
  const nodes = new Map(lineage.nodes.map((node) => [node.id, node]));
  const me = `run:${runId}`;
  const along = (from: "source" | "target", kinds: string[]) =>
    lineage.edges.flatMap((edge) => {
      const node = nodes.get(edge[from === "source" ? "target" : "source"]);
      return edge[from] === me && kinds.includes(edge.kind) && node ? [{ node, edge }] : [];
    });
  return {
    used: along("target", ["used"]),
    wrote: along("source", ["wrote", "saved"]),
    models: descendants(lineage, along("source", ["registered"]).map(({ node }) => node), nodes).map((node) => ({
      node,
      services: lineage.edges.flatMap((edge) => (edge.source === node.id && edge.kind === "served" ? (nodes.get(edge.target) ?? []) : [])),
    })),
  };
}

/** Models that were registered, and those that were made of them: an export is what is served. */
function descendants(lineage: Lineage, first: LineageNode[], nodes: ReadonlyMap<string, LineageNode>): LineageNode[] {
  const found = new Set(first);
  for (const node of found) {
    for (const edge of lineage.edges) {
      const made = edge.source === node.id && edge.kind === "made of" ? nodes.get(edge.target) : undefined;
      if (made) found.add(made);
    }
  }
  return [...found];
}

/** Which runs had which content, the newest first. */
export function byContent(pages: readonly DatasetPage[]): Map<string, Use[]> {
  const found = new Map<string, Use[]>();
  for (const { runs } of pages) {
    for (const use of runs) if (use.digest) found.set(use.digest, [...(found.get(use.digest) ?? []), use]);
  }
  return found;
}

/** Another run that had the very same data: the last one before this, else the one nearest after it. */
export function twin(uses: ReadonlyMap<string, Use[]>, digest: string | null, runId: string): string | null {
  const same = (digest && uses.get(digest)) || [];
  const at = same.findIndex((use) => use.run_id === runId);
  const others = [...same.slice(at + 1), ...same.slice(0, Math.max(0, at)).reverse()];
  return others.find((use) => use.run_id !== runId)?.run_id ?? null;
}
