import { expect, it } from "vitest";
import type { DatasetPage, Use } from "../data/api";
import type { Lineage } from "./api";
import { byContent, linked, twin } from "./run_links";

const use = (run_id: string, digest: string) => ({ run_id, digest }) as Use;
const uses = byContent([{ runs: [use("third", "a"), use("second", "a"), use("first", "b")] } as DatasetPage]);

it("names another run with the very same data, the one before it first", () => {
  expect(twin(uses, "a", "third")).toBe("second");
  expect(twin(uses, "a", "second")).toBe("third");
  expect(twin(uses, "b", "first")).toBeNull();
  expect(twin(uses, null, "first")).toBeNull();
});

it("finds what a run used and wrote, and the models that came of it with their exports and services", () => {
  const lineage = {
    nodes: ["dataset:d", "run:r", "data:out", "model:m:1", "model:onnx:1", "service:s"].map((id) => ({ id })),
    edges: [
      { source: "dataset:d", target: "run:r", kind: "used" },
      { source: "run:r", target: "data:out", kind: "wrote" },
      { source: "run:r", target: "model:m:1", kind: "registered" },
      { source: "model:m:1", target: "model:onnx:1", kind: "made of" },
      { source: "model:onnx:1", target: "service:s", kind: "served" },
    ],
  } as Lineage;
  const found = linked(lineage, "r");
  expect(found.used.map(({ node }) => node.id)).toEqual(["dataset:d"]);
  expect(found.wrote.map(({ node }) => node.id)).toEqual(["data:out"]);
  expect(found.models.map(({ node, services }) => [node.id, services.map((one) => one.id)])).toEqual([
    ["model:m:1", []],
    ["model:onnx:1", ["service:s"]],
  ]);
});
