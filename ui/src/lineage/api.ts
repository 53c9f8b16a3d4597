// What came of what, as the yard tells it.

import { getJson, query } from "../api/http";
import type { Status } from "../api/types";

export type Kind = "data" | "dataset" | "run" | "model" | "service";

/** What is gone has only its id, kind and label. */
export interface LineageNode {
  id: string;
  kind: Kind;
  label: string;
  name?: string | null;
  version?: number | null;
  dataset_id?: string;
  digest?: string | null;
  files?: number | null;
  bytes?: number | null;
  run_id?: string | null;
  number?: number;
  experiment?: string;
  status?: Status;
  stage?: string;
  state?: string;
}

export interface LineageEdge {
  source: string;
  target: string;
  kind: string;
  name: string | null;
  mode: string | null;
  digest: string | null;
  same: boolean | null;
}

export interface Lineage {
  start: string[];
  nodes: LineageNode[];
  edges: LineageEdge[];
  truncated: boolean;
}

export const getLineage = (of: { run?: string; model?: string; dataset?: string }) => getJson<Lineage>(`/api/lineage${query(of)}`);
