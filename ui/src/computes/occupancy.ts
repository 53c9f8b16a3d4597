// Active and waiting runs of a compute target.

import type { Compute, Row, Status } from "../api/types";

const WAITING: ReadonlySet<Status> = new Set(["NotStarted", "Preparing", "Queued"]);

export interface Occupancy {
  active: Row[];
  waiting: { id: string; row: Row | undefined }[];
  busy: number | null; // nodes in use, for targets with nodes
  nodes: number | null;
}

export function occupancy(compute: Compute, rows: ReadonlyMap<string, Row>): Occupancy {
  const targetRows = [...rows.values()].filter((row) => row.target === compute.name);
  const nodes = compute.status.nodes ?? null;
  // the order of the queue if the target reports one, else by submission
  const ids = compute.status.waiting ?? targetRows.filter((row) => WAITING.has(row.status)).map((row) => row.run_id);
  const waiting = new Set(ids);
  return {
    active: targetRows.filter((row) => !WAITING.has(row.status) && !waiting.has(row.run_id)),
    waiting: ids.map((id) => ({ id, row: rows.get(id) })),
    busy: nodes && nodes.filter((node) => node.run_id !== null).length,
    nodes: nodes && nodes.length,
  };
}

const SECRET = /password|secret|token|passphrase/i;

/** Configuration entries with readable names: `vm_size` becomes "vm size". Secrets are omitted. */
export function facts(compute: Compute): { name: string; value: string }[] {
  const entries = Object.entries(compute.configuration).flatMap(([name, value]) => {
    const values = (Array.isArray(value) ? value : [value]).filter((item) => ["string", "number", "boolean"].includes(typeof item));
    return values.length === 0 || values[0] === "" || SECRET.test(name) ? [] : [{ name, value: values.join(", ") }];
  });
  const { partition, node_count, time_limit } = compute.status;
  const details = { partition, nodes: node_count, "time limit": time_limit };
  for (const [name, value] of Object.entries(details)) {
    if (value && !(name in compute.configuration)) entries.push({ name, value: String(value) });
  }
  return entries.map((fact) => ({ ...fact, name: fact.name.replaceAll("_", " ") }));
}
