import { expect, it } from "vitest";
import type { Lineage, LineageEdge, LineageNode } from "./api";
import { layout } from "./layout";

const node = (id: string) => ({ id, kind: id.split(":")[0], label: id }) as LineageNode;
const edge = (source: string, target: string, kind = "used") => ({ source, target, kind }) as LineageEdge;
const lineage = (ids: string[], edges: LineageEdge[], start: string[] = []): Lineage => ({ start, nodes: ids.map(node), edges, truncated: false });

it("places results to the right of their inputs, starting at the left edge", () => {
  const edges = [edge("dataset:a", "run:r"), edge("run:r", "model:m"), edge("model:m", "model:onnx"), edge("model:onnx", "service:s")];
  const chain = layout(lineage(["dataset:a", "run:r", "model:m", "model:onnx", "service:s"], edges), 10);
  const xs = chain.nodes.map(({ x }) => x);
  expect(xs).toEqual([...xs].sort((a, b) => a - b));
  expect(new Set(xs).size).toBe(5);
  expect(xs[0]).toBe(0);
  expect(chain.edges).toHaveLength(4);
});

it("handles cycles: a run may read the data that it writes", () => {
  const cycle = layout(lineage(["data:d", "run:r"], [edge("data:d", "run:r"), edge("run:r", "data:d", "wrote")]), 10);
  expect(cycle.nodes).toHaveLength(2);
  expect(cycle.edges).toHaveLength(2);
});

it("limits the number of nodes but always shows the start", () => {
  const ids = Array.from({ length: 30 }, (_, i) => `run:${i}`);
  const limited = layout(lineage(ids, [], ["run:29"]), 5);
  expect(limited.nodes.map((placed) => placed.node.id)).toContain("run:29");
  expect(limited.nodes).toHaveLength(5);
  expect(limited.hidden).toBe(25);
});
