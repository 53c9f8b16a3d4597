// Web services as the yard tells them.

import { getJson, part, query, sendJson } from "../api/http";

export interface Worker {
  place: number;
  pid: number | null;
  state: string;
  restarts: number;
  started_at: number | null;
  error: string;
}

export interface ServiceVersion {
  version: number;
  state: string;
  error: string;
  models: string[];
  traffic: number;
  entry_script: string;
  snapshot_id: string | null;
  environment_key: string | null;
  created_at: number;
  workers: Worker[];
}

export interface Service {
  name: string;
  kind: string;
  state: string;
  error: string;
  doing: string;
  configuration: {
    host: string;
    port: number;
    workers: number;
    auth_enabled: boolean;
    limits: Record<string, number>;
    batching: { largest: number; wait_ms: number } | null;
  };
  description: string | null;
  tags: Record<string, string | null>;
  properties: Record<string, string | null>;
  traffic: Record<string, number>;
  scoring_uri: string;
  swagger_uri: string;
  created_by: string | null;
  created_at: number;
  changed_at: number;
  lately: { requests_per_second: number; p50_ms?: number; p95_ms?: number; p99_ms?: number };
  versions: ServiceVersion[];
}

export interface Totals {
  requests: number;
  ok: number;
  refused: number;
  failed: number;
  turned_away: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

export interface Point {
  at: number;
  requests_per_second: number;
  failed_per_second: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

export type Stats = Totals & { versions: Record<string, Totals>; history: Point[] };

export interface Request {
  at: string;
  id: string;
  method: string;
  path: string;
  status: number;
  ms: number;
  in: number;
  out: number;
  version: number | string;
  worker: number | string;
}

export interface Answer {
  status: number;
  text: string;
  json: unknown;
  ms: number;
  request_id: string;
  version: string;
}

export interface Keys {
  primary: string;
  secondary: string;
}

const of = (name: string) => `/api/services/${part(name)}`;

export const getServices = () => getJson<Service[]>("/api/services");
export const getService = (name: string) => getJson<Service>(of(name));
export const getStats = (name: string) => getJson<Stats>(`${of(name)}/stats`);
export const getRequests = (name: string, limit: number) => getJson<Request[]>(`${of(name)}/requests${query({ limit })}`);
export const getServiceLog = async (name: string, lines: number) =>
  (await getJson<{ text: string }>(`${of(name)}/logs${query({ lines })}`)).text;
export const getKeys = (name: string) => getJson<Keys>(`${of(name)}/keys`);
export const newKey = (name: string, which: keyof Keys) => sendJson<Keys>("POST", `${of(name)}/keys`, { which, value: null });
export const setTraffic = (name: string, shares: Record<string, number>) => sendJson<Service>("POST", `${of(name)}/traffic`, shares);
export const invoke = (name: string, body: string) => sendJson<Answer>("POST", `${of(name)}/invoke`, { body });
export const getOpenApi = (name: string) => getJson<Record<string, unknown>>(`${of(name)}/openapi`);
