// A sweep as the yard tells it.

import { getJson, part } from "../api/http";
import type { Status, Value } from "../api/types";

export interface Child {
  number: number;
  run_id: string;
  parameters: Record<string, Value>;
  status: Status;
  best: number | null;
  reports: number;
  stopped: string;
  resumes: string;
  error?: string; // why it failed
  began_at?: number | null; // when it started; until then, when it was submitted
}

export interface Sweep {
  sweep_id: string;
  status: Status;
  doing: string;
  primary_metric: string;
  goal: "maximize" | "minimize";
  sampling: { name: string; space: Record<string, unknown>; seed: number; population?: { size: number } | null };
  policy: ({ name: string } & Record<string, Value>) | null;
  max_total_runs: number;
  max_concurrent_runs: number;
  max_duration_minutes: number;
  best: number | null;
  children: Child[];
  resume_from: string[];
  target: string | null;
}

export interface Importance {
  parameters: Record<string, number>;
  why_not: string;
}

const of = (id: string) => `/api/sweeps/${part(id)}`;

export const getSweep = (id: string) => getJson<Sweep>(of(id));
export const getImportance = (id: string) => getJson<Importance>(`${of(id)}/importance`);
