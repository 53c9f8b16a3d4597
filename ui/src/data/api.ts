// Datastores, datasets and transfers as the yard tells them.

import { getJson, part, query, sendJson } from "../api/http";
import type { Status } from "../api/types";

export interface Datastore {
  name: string;
  kind: string;
  configuration: Record<string, unknown>;
  is_default: boolean;
  credentials: "none" | "kept" | "environment";
  created_at: number | null;
}

export interface Entry {
  path: string;
  size: number;
  modified_at: number;
  is_folder: boolean;
}

export interface Listing {
  datastore: string;
  path: string;
  entries: Entry[];
  files: number;
  bytes: number;
  truncated: boolean;
}

export interface Transfer {
  transfer_id: string;
  kind: "upload" | "download";
  datastore: string;
  path: string;
  local: string;
  state: "running" | "done" | "failed" | "canceled";
  created_at: number;
  files: number | null;
  files_done: number;
  files_skipped: number;
  bytes: number | null;
  bytes_done: number;
  doing: string;
  seconds: number;
  error: { code: string; message: string; hint: string } | null;
  warnings: string[];
}

export interface Dataset {
  dataset_id: string;
  name: string | null;
  version: number | null;
  kind: "file" | "tabular";
  definition: Record<string, unknown>;
  sources: string[];
  digest: string | null;
  files: number | null;
  bytes: number | null;
  description: string | null;
  tags: Record<string, string | null>;
  run_id: string | null;
  created_at: number;
}

export interface Use {
  run_id: string;
  name: string;
  mode: string;
  digest: string | null;
  same: boolean | null;
  status: Status | null;
  experiment: string | null;
  created_at: number | null;
}

export interface DatasetPage {
  dataset: Dataset;
  versions: Dataset[];
  runs: Use[];
}

export interface DatasetNow {
  digest: string;
  files: number;
  bytes: number;
  same: boolean | null;
}

export interface DatasetFiles {
  files: { name: string; size: number; modified_at: number | null }[];
  total: number;
  bytes: number;
}

export type Which = { id: string } | { name: string; version?: number | null };

export const getDatastores = () => getJson<Datastore[]>("/api/datastores");
export const getDatastore = (name: string) => getJson<Datastore>(`/api/datastores/${part(name)}`);
export const getListing = (name: string, below: string) => getJson<Listing>(`/api/datastores/${part(name)}/files${query({ below })}`);
export const getTransfers = () => getJson<Transfer[]>("/api/transfers");
export const cancelTransfer = (id: string) => sendJson<Transfer>("POST", `/api/transfers/${part(id)}/cancel`);
export const getDatasets = () => getJson<Dataset[]>("/api/datasets");
export const getDatasetPage = (which: Which) => getJson<DatasetPage>(`/api/datasets/page${query({ ...which })}`);
export const getDatasetNow = (which: Which) => getJson<DatasetNow>(`/api/datasets/now${query({ ...which })}`);
export const getDatasetFiles = (dataset: Dataset) => sendJson<DatasetFiles>("POST", "/api/datasets/files", { definition: dataset.definition });
export const changeDataset = (id: string, tags: Dataset["tags"]) =>
  sendJson<Dataset>("PATCH", `/api/datasets/${part(id)}`, { description: null, tags });
