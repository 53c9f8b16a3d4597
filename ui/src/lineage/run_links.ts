// The parts of a lineage graph that concern one run.

import type { DatasetPage, DatasetUse } from "../data/api";
import type { Lineage, LineageEdge, LineageNode } from "./api";

export interface RunLinks {
  used: { node: LineageNode; edge: LineageEdge }[];
  wrote: { node: LineageNode; edge: LineageEdge }[];
  models: { node: LineageNode; services: LineageNode[] }[];
}

export function runLinks(lineage: Lineage, runId: string): RunLinks {
  const nodes = new Map(lineage.nodes.map((node) => [node.id, node]));
  const runNode = `run:${runId}`;
  const neighbors = (from: "source" | "target", kinds: string[]) =>
    lineage.edges.flatMap((edge) => {
      const node = nodes.get(edge[from === "source" ? "target" : "source"]);
      return edge[from] === runNode && kinds.includes(edge.kind) && node ? [{ node, edge }] : [];
    });
  return {
    used: neighbors("target", ["used"]),
    wrote: neighbors("source", ["wrote", "saved"]),
    models: descendants(lineage, neighbors("source", ["registered"]).map(({ node }) => node), nodes).map((node) => ({
      node,
      services: lineage.edges.flatMap((edge) => (edge.source === node.id && edge.kind === "served" ? (nodes.get(edge.target) ?? []) : [])),
    })),
  };
}

/** Registered models and models exported from them, which are the ones that are served. */
function descendants(lineage: Lineage, first: LineageNode[], nodes: ReadonlyMap<string, LineageNode>): LineageNode[] {
  const models = new Set(first);
  for (const node of models) {
    for (const edge of lineage.edges) {
      const exported = edge.source === node.id && edge.kind === "made of" ? nodes.get(edge.target) : undefined;
      if (exported) models.add(exported);
    }
  }
  return [...models];
}

/** The runs that used each digest, newest first. */
export function usesByDigest(pages: readonly DatasetPage[]): Map<string, DatasetUse[]> {
  const uses = new Map<string, DatasetUse[]>();
  for (const { runs } of pages) {
    for (const use of runs) if (use.digest) uses.set(use.digest, [...(uses.get(use.digest) ?? []), use]);
  }
  return uses;
}

/** Another run that used the same data: the last one before this run, else the next one after it. */
export function otherRunWithDigest(uses: ReadonlyMap<string, DatasetUse[]>, digest: string | null, runId: string): string | null {
  const candidates = (digest && uses.get(digest)) || [];
  const index = candidates.findIndex((use) => use.run_id === runId);
  const others = [...candidates.slice(index + 1), ...candidates.slice(0, Math.max(0, index)).reverse()];
  return others.find((use) => use.run_id !== runId)?.run_id ?? null;
}
