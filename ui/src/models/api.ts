// Requests about registered models.

import { getJson, part, parts, queryString, sendJson } from "../api/http";
import type { Schemas } from "../api/types";

export type DataUsed = Schemas["DataUsed"];
export type Model = Schemas["ModelView"]; // one version
export type ModelEvent = Schemas["ModelEvent"];
export type NamedModel = Schemas["NamedModel"];
export type Version = Schemas["ModelPage"];
export type Comparison = Schemas["ModelComparison"];

export const COMPARED_GROUPS = ["about", "metrics", "data", "packages", "tags", "properties", "files"] as const;
export const STAGES = ["none", "candidate", "approved", "rejected", "archived"] as const;

const url = (name: string, version?: number | string) =>
  `/api/models/${part(name)}${version === undefined ? "" : `/versions/${part(String(version))}`}`;

export const getModels = () => getJson<Model[]>("/api/models");
export const getModel = (name: string) => getJson<NamedModel>(url(name));
export const getVersion = (name: string, version: number | string) => getJson<Version>(url(name, version));
export const setStage = (name: string, version: number, stage: string, note: string) =>
  sendJson<Model>("POST", `${url(name, version)}/stage`, { stage, note: note || null });
export const setAlias = (name: string, alias: string, version: number) =>
  sendJson<Model>("POST", `${url(name)}/aliases/${part(alias)}`, { version });
export const removeAlias = (name: string, alias: string) => sendJson<null>("DELETE", `${url(name)}/aliases/${part(alias)}`);
export const changeModel = (name: string, version: number, change: Partial<{ description: string; tags: Model["tags"]; remove_tags: string[] }>) =>
  sendJson<Model>("PATCH", url(name, version), change);
export const deleteVersion = (name: string, version: number) => sendJson<null>("DELETE", url(name, version));
export const compareVersions = (name: string, version: number, other: string) =>
  getJson<Comparison>(`${url(name, version)}/compare${queryString({ other })}`);
export const modelFileUrl = (name: string, version: number, path: string) => `${url(name, version)}/files/${parts(path)}`;
export const modelZipUrl = (name: string, version: number) => `${url(name, version)}/files.zip`;
