import { expect, it } from "vitest";
import type { Compute, Row, Status } from "../api/types";
import { facts, occupancy } from "./occupancy";

const row = (run_id: string, target: string, status: Status) => ({ run_id, target, status }) as Row;
const compute = (status: Compute["status"], configuration = {}): Compute => ({
  name: "cluster",
  kind: "AmlCompute",
  configuration,
  created_at: 0,
  status,
});
const rows = new Map(
  [row("a", "cluster", "Running"), row("b", "cluster", "Queued"), row("c", "local", "Running")].map((r) => [r.run_id, r]),
);

it("separates active from waiting runs of a cluster", () => {
  const nodes = [
    { name: "node-0", run_id: "a" },
    { name: "node-1", run_id: null },
  ];
  const result = occupancy(compute({ nodes, waiting: ["b"] }), rows);
  expect(result).toMatchObject({ busy: 1, nodes: 2 });
  expect(result.active.map((r) => r.run_id)).toEqual(["a"]);
  expect(result.waiting.map((w) => w.id)).toEqual(["b"]);
});

it("uses the status of the runs if the target reports no queue", () => {
  const result = occupancy(compute({ cpus: 2 }), rows);
  expect(result).toMatchObject({ busy: null, nodes: null });
  expect(result.waiting.map((w) => w.id)).toEqual(["b"]);
});

it("lists the configured values of a target", () => {
  expect(facts(compute({}, { max_nodes: 4, vm_size: "", vnet: null }))).toEqual([{ name: "max nodes", value: "4" }]);
});

it("lists hosts but no secrets", () => {
  const result = facts(compute({ partition: "gpu", node_count: 4 }, { hosts: ["a", "b"], password: "x", options: { y: 1 } }));
  expect(result).toEqual([
    { name: "hosts", value: "a, b" },
    { name: "partition", value: "gpu" },
    { name: "nodes", value: "4" },
  ]);
});
