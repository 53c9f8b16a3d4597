// Layout of the lineage graph, from left to right.

import { graphlib, layout as runDagre } from "@dagrejs/dagre";
import type { Lineage, LineageEdge, LineageNode, NodeKind } from "./api";

export const BOX = { width: 196, height: 50, columnGap: 64, rowGap: 14 };

export interface PlacedNode {
  node: LineageNode;
  x: number;
  y: number;
}

export interface PlacedEdge {
  edge: LineageEdge;
  path: string;
}

export interface Layout {
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  width: number;
  height: number;
  hidden: number; // nodes above the limit
}

/** Places at most `limit` nodes of each kind; the start nodes are always included. */
export function layout(lineage: Lineage, limit: number): Layout {
  const shown = limitPerKind(lineage, limit);
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: BOX.rowGap, ranksep: BOX.columnGap });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of shown) graph.setNode(node.id, { width: BOX.width, height: BOX.height });
  const edges = lineage.edges.filter(({ source, target }) => source !== target && graph.hasNode(source) && graph.hasNode(target));
  edges.forEach(({ source, target }, i) => graph.setEdge(source, target, {}, String(i)));
  runDagre(graph);
  // dagre returns centers
  const corner = (id: string) => ({ x: graph.node(id).x - BOX.width / 2, y: graph.node(id).y - BOX.height / 2 });
  const { width = BOX.width, height = BOX.height } = graph.graph();
  return {
    nodes: shown.map((node) => ({ node, ...corner(node.id) })),
    edges: edges.map((edge) => ({ edge, path: curve(corner(edge.source), corner(edge.target)) })),
    width,
    height,
    hidden: lineage.nodes.length - shown.length,
  };
}

function limitPerKind({ nodes, start }: Lineage, limit: number): LineageNode[] {
  const counts = new Map<NodeKind, number>();
  const startFirst = [...nodes].sort((a, b) => Number(start.includes(b.id)) - Number(start.includes(a.id)));
  return startFirst.filter(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= limit;
  });
}

function curve(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const bend = Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
