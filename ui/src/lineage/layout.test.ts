import { expect, it } from "vitest";
import type { Kind, Lineage, LineageEdge, LineageNode } from "./api";
import { addressOf, edgeWords, layout } from "./layout";

const node = (id: string, more: Partial<LineageNode> = {}): LineageNode => ({
  id,
  kind: id.split(":")[0] as Kind,
  label: id,
  ...more,
});
const edge = (source: string, target: string, more: Partial<LineageEdge> = {}): LineageEdge => ({
  source,
  target,
  kind: "used",
  name: null,
  mode: null,
  digest: null,
  same: null,
  ...more,
});
const lineage = (nodes: LineageNode[], edges: LineageEdge[], start: string[] = []): Lineage => ({ start, nodes, edges, truncated: false });

it("puts what came of something to the right of it, and leaves no empty column", () => {
  const edges = [edge("dataset:a", "run:r"), edge("run:r", "model:m"), edge("model:m", "model:onnx"), edge("model:onnx", "service:s")];
  const found = layout(lineage(["dataset:a", "run:r", "model:m", "model:onnx", "service:s"].map((id) => node(id)), edges), 10);
  const xs = found.boxes.map((box) => box.x);
  expect(xs).toEqual([...xs].sort((a, b) => a - b));
  expect(new Set(xs).size).toBe(5);
  expect(found.lines).toHaveLength(4);
  const alone = layout(lineage([node("run:r"), node("model:m")], [edge("run:r", "model:m")]), 10);
  expect(Math.min(...alone.boxes.map((box) => box.x))).toBe(0);
});

it("draws a circle, of a run that reads what it wrote, without end", () => {
  const found = layout(lineage([node("data:d"), node("run:r")], [edge("data:d", "run:r"), edge("run:r", "data:d", { kind: "wrote" })]), 10);
  expect(found.boxes).toHaveLength(2);
  expect(found.lines).toHaveLength(2);
});

it("shows a few of many, and among them what was asked for", () => {
  const nodes = Array.from({ length: 30 }, (_, i) => node(`run:${i}`));
  const found = layout(lineage(nodes, [], ["run:29"]), 5);
  expect(found.boxes.map((box) => box.node.id)).toContain("run:29");
  expect(found.boxes).toHaveLength(5);
  expect(found.hidden).toBe(25);
});

it("links to what is still there", () => {
  expect(addressOf(node("dataset:1", { name: "digits", version: 2, dataset_id: "1" }))).toBe("/data/datasets/digits?version=2");
  expect(addressOf(node("data:x", { label: "store/a/b" }))).toBe("/data/stores/store?path=a%2Fb");
  expect(addressOf(node("run:gone"))).toBeNull();
});

it("says an edge in words", () => {
  expect(edgeWords(edge("a", "b", { name: "digits", mode: "mount", same: false }))).toBe(
    "used as digits (mount), other files than are registered",
  );
  expect(edgeWords(edge("a", "b", { kind: "registered" }))).toBe("registered");
});
