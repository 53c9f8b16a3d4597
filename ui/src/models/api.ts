// Registered models as the yard tells them.

import { getJson, part, parts, query, sendJson } from "../api/http";
import type { Value } from "../api/types";

export interface DataUsed {
  name: string;
  mode: string;
  datastore: string | null;
  path: string | null;
  dataset_id: string | null;
  dataset_name: string | null;
  dataset_version: number | null;
  digest: string | null;
}

/** One version of a model. */
export interface Model {
  id: string;
  name: string;
  version: number;
  description: string | null;
  framework: string | null;
  framework_version: string | null;
  tags: Record<string, string | null>;
  properties: Record<string, string | null>;
  stage: string;
  aliases: string[];
  digest: string;
  size: number;
  created_by: string | null;
  created_at: number;
  changed_at: number;
  experiment: string | null;
  run_id: string | null;
  snapshot_id: string | null;
  environment_key: string | null;
  metrics: Record<string, Value>;
  data: DataUsed[];
  details: { made_of?: string };
  used_by: string[];
}

export interface Deed {
  version: number;
  what: string;
  before: string | null;
  after: string | null;
  note: string | null;
  by: string | null;
  at: number;
}

export interface NamedModel {
  name: string;
  versions: Model[];
  aliases: { alias: string; version: number; set_by: string | null; set_at: number }[];
  history: Deed[];
}

export interface ModelFile {
  path: string;
  size: number;
  digest: string;
}

export interface Version {
  model: Model;
  environment_lock: string | null;
  files: ModelFile[];
  history: Deed[];
}

export interface Difference {
  name: string;
  left: Value;
  right: Value;
}

export const SIDES = ["about", "metrics", "data", "packages", "tags", "properties", "files"] as const;

export type Comparison = { left: string; right: string; same_files: boolean } & Record<(typeof SIDES)[number], Difference[]>;

export const STAGES = ["none", "candidate", "approved", "rejected", "archived"] as const;

const of = (name: string, version?: number | string) =>
  `/api/models/${part(name)}${version === undefined ? "" : `/versions/${part(String(version))}`}`;

export const getModels = () => getJson<Model[]>("/api/models");
export const getModel = (name: string) => getJson<NamedModel>(of(name));
export const getVersion = (name: string, version: number | string) => getJson<Version>(of(name, version));
export const setStage = (name: string, version: number, stage: string, note: string) =>
  sendJson<Model>("POST", `${of(name, version)}/stage`, { stage, note: note || null });
export const setAlias = (name: string, alias: string, version: number) =>
  sendJson<Model>("POST", `${of(name)}/aliases/${part(alias)}`, { version });
export const removeAlias = (name: string, alias: string) => sendJson<null>("DELETE", `${of(name)}/aliases/${part(alias)}`);
export const changeModel = (name: string, version: number, change: Partial<{ description: string; tags: Model["tags"]; remove_tags: string[] }>) =>
  sendJson<Model>("PATCH", of(name, version), change);
export const deleteVersion = (name: string, version: number) => sendJson<null>("DELETE", of(name, version));
export const compareVersions = (name: string, version: number, other: string) =>
  getJson<Comparison>(`${of(name, version)}/compare${query({ other })}`);
export const modelFileAddress = (name: string, version: number, path: string) => `${of(name, version)}/files/${parts(path)}`;
export const modelZipAddress = (name: string, version: number) => `${of(name, version)}/files.zip`;
