// Who is on a compute target and who waits for it, from what the yard says of targets and of runs. Pure.

import type { Compute, Row, Status } from "../api/types";

const WAITING: ReadonlySet<Status> = new Set(["NotStarted", "Preparing", "Queued"]);

export interface Occupancy {
  here: Row[];
  waiting: { id: string; row: Row | undefined }[];
  busy: number | null; // nodes in use, where there are nodes
  nodes: number | null;
}

export function occupancy(compute: Compute, rows: ReadonlyMap<string, Row>): Occupancy {
  const mine = [...rows.values()].filter((row) => row.target === compute.name);
  const nodes = compute.status.nodes ?? null;
  // a queue that knows its order is believed; else the runs that wait, as they came
  const ids = compute.status.waiting ?? mine.filter((row) => WAITING.has(row.status)).map((row) => row.run_id);
  const waiting = new Set(ids);
  return {
    here: mine.filter((row) => !WAITING.has(row.status) && !waiting.has(row.run_id)),
    waiting: ids.map((id) => ({ id, row: rows.get(id) })),
    busy: nodes && nodes.filter((node) => node.run_id !== null).length,
    nodes: nodes && nodes.length,
  };
}

const SECRET = /password|secret|token|passphrase/i;

/** The configuration's words as people say them: `vm_size` is "vm size". */
export function facts(compute: Compute): { name: string; value: string }[] {
  const told = Object.entries(compute.configuration).flatMap(([name, value]) => {
    const values = (Array.isArray(value) ? value : [value]).filter((one) => ["string", "number", "boolean"].includes(typeof one));
    return values.length === 0 || values[0] === "" || SECRET.test(name) ? [] : [{ name, value: values.join(", ") }];
  });
  const { partition, node_count, time_limit } = compute.status;
  const found = { partition, nodes: node_count, "time limit": time_limit };
  for (const [name, value] of Object.entries(found)) {
    if (value && !(name in compute.configuration)) told.push({ name, value: String(value) });
  }
  return told.map((fact) => ({ ...fact, name: fact.name.replaceAll("_", " ") }));
}
