// The shapes of the yard's answers, as docs/reference/api.md tells them.

export type Status =
  | "NotStarted"
  | "Preparing"
  | "Queued"
  | "Starting"
  | "Running"
  | "Finalizing"
  | "CancelRequested"
  | "Completed"
  | "Failed"
  | "Canceled";

export type Value = string | number | boolean | null;

/** One line of the table of runs. */
export interface Row {
  run_id: string;
  number: number;
  experiment: string;
  name: string | null;
  display_name: string | null;
  status: Status;
  target: string | null;
  type: string | null;
  parent_id: string | null;
  submitted_by: string | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  duration_s: number | null;
  nodes: number | null;
  ranks: number | null;
  reason: string | null;
  tags: Record<string, string | null>;
  params: Record<string, Value>;
  metrics: Record<string, Value>;
}

export interface Table {
  total: number;
  rows: Row[];
  version: number;
}

export interface Field {
  name: string;
  kind: string;
  runs: number;
}

export interface Completion {
  from: number;
  to: number;
  options: { text: string; detail: string }[];
}

export interface End {
  reason: string;
  message: string;
  exit_code: number | null;
  signal: string | null;
  rank: number | null;
  node: string | null;
  traceback: string;
  last_lines: string;
  processes_left: number | null;
}

/** Everything about one run. */
export interface RunView {
  run_id: string;
  number: number;
  experiment: string;
  status: Status;
  type: string | null;
  name: string | null;
  parent_id: string | null;
  root_id: string;
  target: string | null;
  snapshot_id: string | null;
  environment_key: string | null;
  submitted_by: string | null;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  end: End | null;
  timeline: Record<string, number>;
  activity: string;
  activity_since: number | null;
  warnings: string[];
  tags: Record<string, string | null>;
  properties: Record<string, string | null>;
  spec: Record<string, unknown> | null;
  folder: string;
  version: number;
}

export interface Series {
  name: string;
  kind: string;
  count: number;
  last: Value;
  min: number | null;
  max: number | null;
}

export interface Compute {
  name: string;
  kind: string;
  configuration: Record<string, unknown>;
  created_at: number | null;
  status: {
    nodes?: { name: string; run_id: string | null }[];
    waiting?: string[];
    answers?: boolean; // a cluster of elsewhere: whether it can be reached now
    partition?: string;
    node_count?: number;
    time_limit?: string | number | null;
    cpus?: number;
    memory_gb?: number;
    gpus?: string[];
  };
}

/** An environment that was built, on the yard's disk. */
export interface Built {
  key: string;
  name: string;
  path: string;
  size_bytes: number;
  created_at: number;
  last_used_at: number;
  packages: string[];
  python: string;
}

/** An environment that somebody registered by name. */
export interface Registered {
  name: string;
  version: string;
  definition: Record<string, unknown>;
}

export interface CodeChange {
  path: string;
  change: "added" | "removed" | "changed";
  diff: string | null;
}

export interface PackageChange {
  package: string;
  a: string | null;
  b: string | null;
}

const ENDED: ReadonlySet<string> = new Set(["Completed", "Failed", "Canceled"]);

export function hasEnded(status: Status): boolean {
  return ENDED.has(status);
}
