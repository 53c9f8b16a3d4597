// Where each thing of a lineage stands: what came first on the left, what came of it to its right. Pure.

import { datasetAddress, datastoreAddress, modelAddress, runAddress, serviceAddress } from "../router/routes";
import type { Kind, Lineage, LineageEdge, LineageNode } from "./api";

export const BOX = { width: 196, height: 50, across: 64, down: 14 };

export interface Placed {
  node: LineageNode;
  x: number;
  y: number;
}

export interface Drawn {
  edge: LineageEdge;
  path: string;
}

export interface Layout {
  boxes: Placed[];
  lines: Drawn[];
  width: number;
  height: number;
  hidden: number; // nodes that are not drawn, for a column would be longer than anybody reads
}

const FIRST_COLUMN: Record<Kind, number> = { data: 0, dataset: 0, run: 1, model: 2, service: 3 };

export function layout(lineage: Lineage, most: number): Layout {
  const columns = columnsOf(lineage);
  const used = [...new Set(columns.values())].sort((a, b) => a - b);
  const starts = new Set(lineage.start);
  const boxes = new Map<string, Placed>();
  let hidden = 0;
  let tallest = 0;
  used.forEach((column, at) => {
    const members = lineage.nodes.filter((node) => columns.get(node.id) === column);
    const wanted = new Map(members.map((node) => [node.id, height(node, lineage.edges, boxes)]));
    // where it was asked for from is always seen; the rest stands near to what it came of
    const kept = [...members].sort((a, b) => Number(starts.has(b.id)) - Number(starts.has(a.id))).slice(0, most);
    kept.sort((a, b) => wanted.get(a.id)! - wanted.get(b.id)! || members.indexOf(a) - members.indexOf(b));
    hidden += members.length - kept.length;
    tallest = Math.max(tallest, kept.length);
    kept.forEach((node, i) => {
      boxes.set(node.id, { node, x: at * (BOX.width + BOX.across), y: i * (BOX.height + BOX.down) });
    });
  });
  const height_ = Math.max(1, tallest) * (BOX.height + BOX.down) - BOX.down;
  centre([...boxes.values()], height_);
  return {
    boxes: [...boxes.values()],
    lines: lineage.edges.flatMap((edge) => {
      const [from, to] = [boxes.get(edge.source), boxes.get(edge.target)];
      return from && to && from !== to ? [{ edge, path: curve(from, to) }] : [];
    }),
    width: Math.max(1, used.length) * (BOX.width + BOX.across) - BOX.across,
    height: height_,
    hidden,
  };
}

/** One right of what it came of, and never left of where its kind begins. A circle (data read and written) is cut. */
function columnsOf(lineage: Lineage): Map<string, number> {
  const into = new Map<string, string[]>();
  for (const { source, target } of lineage.edges) into.set(target, [...(into.get(target) ?? []), source]);
  const nodes = new Map(lineage.nodes.map((node) => [node.id, node]));
  const found = new Map<string, number>();
  const asked = new Set<string>();
  const columnOf = (id: string): number => {
    const known = found.get(id);
    if (known !== undefined) return known;
    const node = nodes.get(id);
    if (!node || asked.has(id)) return -1;
    asked.add(id);
    const before = (into.get(id) ?? []).map(columnOf);
    const column = Math.max(FIRST_COLUMN[node.kind], ...before.map((one) => one + 1));
    found.set(id, column);
    return column;
  };
  for (const id of nodes.keys()) columnOf(id);
  return found;
}

/** The mean height of what it came of; what came of nothing stays as it was told. */
function height(node: LineageNode, edges: LineageEdge[], boxes: ReadonlyMap<string, Placed>): number {
  const before = edges.flatMap((edge) => (edge.target === node.id ? (boxes.get(edge.source) ?? []) : []));
  return before.length ? before.reduce((sum, box) => sum + box.y, 0) / before.length : 0;
}

function centre(boxes: Placed[], tall: number): void {
  const lowest = new Map<number, number>();
  for (const box of boxes) lowest.set(box.x, Math.max(lowest.get(box.x) ?? 0, box.y + BOX.height));
  for (const box of boxes) box.y += (tall - lowest.get(box.x)!) / 2;
}

function curve(from: Placed, to: Placed): string {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const bend = Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** The page of it; null for what is gone. */
export function addressOf(node: LineageNode): string | null {
  if (node.kind === "run") return node.run_id ? runAddress(node.run_id) : null;
  if (node.kind === "model") return node.name ? modelAddress(node.name, node.version) : null;
  if (node.kind === "service") return node.name ? serviceAddress(node.name) : null;
  if (node.kind === "dataset") return node.dataset_id ? datasetAddress(node) : null;
  const [store, ...path] = node.label.split("/");
  return datastoreAddress(store ?? "", path.join("/").replace(/\/+$/, ""));
}

/** An edge in words: "used as digits (mount), as it is registered". */
export function edgeWords({ kind, name, mode, same }: LineageEdge): string {
  const as = kind === "used" && name ? ` as ${name}` : kind === "named" && name ? ` for ${name}` : "";
  const how = kind === "used" && mode ? ` (${mode})` : "";
  const was = same === null ? "" : same ? ", as it is registered" : ", other files than are registered";
  return `${kind}${as}${how}${was}`;
}
