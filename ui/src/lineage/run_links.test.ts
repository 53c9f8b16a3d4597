import { expect, it } from "vitest";
import type { DatasetPage, DatasetUse } from "../data/api";
import type { Lineage } from "./api";
import { usesByDigest, runLinks, otherRunWithDigest } from "./run_links";

const use = (run_id: string, digest: string) => ({ run_id, digest }) as DatasetUse;
const uses = usesByDigest([{ runs: [use("third", "a"), use("second", "a"), use("first", "b")] } as DatasetPage]);

it("finds another run with the same data, preferring the previous one", () => {
  expect(otherRunWithDigest(uses, "a", "third")).toBe("second");
  expect(otherRunWithDigest(uses, "a", "second")).toBe("third");
  expect(otherRunWithDigest(uses, "b", "first")).toBeNull();
  expect(otherRunWithDigest(uses, null, "first")).toBeNull();
});

it("finds inputs, outputs and models of a run, with exports and services", () => {
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
  const links = runLinks(lineage, "r");
  expect(links.used.map(({ node }) => node.id)).toEqual(["dataset:d"]);
  expect(links.wrote.map(({ node }) => node.id)).toEqual(["data:out"]);
  expect(links.models.map(({ node, services }) => [node.id, services.map((service) => service.id)])).toEqual([
    ["model:m:1", []],
    ["model:onnx:1", ["service:s"]],
  ]);
});
