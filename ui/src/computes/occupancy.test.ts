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

it("tells who is on a cluster's nodes from who waits", () => {
  const nodes = [
    { name: "node-0", run_id: "a" },
    { name: "node-1", run_id: null },
  ];
  const found = occupancy(compute({ nodes, waiting: ["b"] }), rows);
  expect(found).toMatchObject({ busy: 1, nodes: 2 });
  expect(found.here.map((r) => r.run_id)).toEqual(["a"]);
  expect(found.waiting.map((w) => w.id)).toEqual(["b"]);
});

it("tells it by the runs' own words where the target has no queue to ask", () => {
  const found = occupancy(compute({ cpus: 2 }), rows);
  expect(found).toMatchObject({ busy: null, nodes: null });
  expect(found.waiting.map((w) => w.id)).toEqual(["b"]);
});

it("says what a target was configured as, and leaves out what was not", () => {
  expect(facts(compute({}, { max_nodes: 4, vm_size: "", vnet: null }))).toEqual([{ name: "max nodes", value: "4" }]);
});

it("names the hosts of a target, and none of its secrets", () => {
  const found = facts(compute({ partition: "gpu", node_count: 4 }, { hosts: ["a", "b"], password: "x", options: { y: 1 } }));
  expect(found).toEqual([
    { name: "hosts", value: "a, b" },
    { name: "partition", value: "gpu" },
    { name: "nodes", value: "4" },
  ]);
});
