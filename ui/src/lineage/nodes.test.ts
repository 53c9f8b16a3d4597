import { expect, it } from "vitest";
import type { LineageEdge, LineageNode } from "./api";
import { edgeLabel, nodeHref } from "./nodes";

const node = (id: string, changes: Partial<LineageNode> = {}) =>
  ({ id, kind: id.split(":")[0], label: id, ...changes }) as LineageNode;
const edge = (changes: Partial<LineageEdge>): LineageEdge => ({
  source: "a",
  target: "b",
  kind: "used",
  name: null,
  mode: null,
  digest: null,
  same: null,
  ...changes,
});

it("links to objects that still exist", () => {
  expect(nodeHref(node("dataset:1", { name: "digits", version: 2, dataset_id: "1" }))).toBe("/data/datasets/digits?version=2");
  expect(nodeHref(node("data:x", { label: "store/a/b" }))).toBe("/data/stores/store?path=a%2Fb");
  expect(nodeHref(node("run:deleted"))).toBeNull();
});

it("describes an edge", () => {
  expect(edgeLabel(edge({ name: "digits", mode: "mount", same: false }))).toBe(
    "used as digits (mount), differs from the registered version",
  );
  expect(edgeLabel(edge({ kind: "registered" }))).toBe("registered");
});
