// Requests of the run page.

import { getBytes, getJson, getText, part, parts, queryString, request, sendJson, type Options } from "../api/http";
import type { CodeChange, PackageChange, RunView, Schemas, Series, Table, Value } from "../api/types";

export type Log = Schemas["LogView"];
export type LogMatch = Schemas["LogMatch"];
export type FileEntry = Schemas["FileView"];
export type Phase = Schemas["Phase"];
export type Process = Schemas["ProcessView"];
export type LoggedValue = Schemas["LoggedValue"];

const url = (id: string) => `/api/runs/${part(id)}`;

export const getRun = (id: string) => getJson<RunView>(url(id));
export const getSeries = (id: string) => getJson<Series[]>(`${url(id)}/series`);
export const getSystem = (id: string) => getJson<Series[]>(`${url(id)}/system`);
export const getTimeline = (id: string) => getJson<Phase[]>(`${url(id)}/timeline`);
export const getPlan = (id: string) => getJson<Process[]>(`${url(id)}/plan`);
export const getLogs = (id: string) => getJson<Log[]>(`${url(id)}/logs`);
export const getFiles = (id: string) => getJson<FileEntry[]>(`${url(id)}/files`);
export const getEnvironment = (id: string) => getJson<Schemas["EnvironmentView"]>(`${url(id)}/environment`);
export const cancelRun = (id: string) => sendJson<RunView>("POST", `${url(id)}/cancel`);
export const rerun = (id: string) => sendJson<RunView>("POST", `${url(id)}/rerun`);

export const getValues = (id: string, name: string, after = 0, limit = 1000) =>
  getJson<Schemas["ValuePage"]>(`${url(id)}/values/${parts(name)}${queryString({ after, limit })}`);

export const setTags = (id: string, set: RunView["tags"], remove: string[] = []) =>
  sendJson<RunView>("PATCH", `${url(id)}/tags`, { set, remove });

export const getCode = async (id: string): Promise<FileEntry[]> =>
  (await getJson<Schemas["CodeFile"][]>(`${url(id)}/code`)).map(({ path, size }) => ({ name: path, size }));

export const getCodeFile = (id: string, path: string, options?: Options) =>
  getText(`${url(id)}/code/${parts(path)}`, options);

export const diffCode = (a: string, b: string) => getJson<CodeChange[]>(`/api/diff/code${queryString({ a, b })}`);
export const diffEnvironments = (a: string, b: string) =>
  getJson<PackageChange[]>(`/api/diff/environment${queryString({ a, b })}`);

/** Parameters from the run table, which parses those of scripts and of MLflow alike. */
export async function getParams(id: string): Promise<Record<string, Value>> {
  const { rows } = await getJson<Table>(`/api/runs/table${queryString({ query: `id:${JSON.stringify(id)}`, limit: 1 })}`);
  return rows[0]?.run_id === id ? rows[0].params : {};
}

export async function getLogBytes(id: string, name: string, from: number, limit: number): Promise<Uint8Array> {
  return (await getBytes(`${url(id)}/logs/${parts(name)}${queryString({ from, limit })}`)).bytes;
}

export const searchLog = (id: string, name: string, text: string, limit: number, options?: Options) =>
  getJson<LogMatch[]>(`${url(id)}/logs/${parts(name)}/search${queryString({ text, limit })}`, options);

export const logUrl = (id: string, name: string) => `${url(id)}/logs/${parts(name)}`;
export const fileUrl = (id: string, name: string) => `${url(id)}/files/${parts(name)}`;
export const previewUrl = (id: string, name: string) => `${fileUrl(id, name)}?inline=1`;
export const zipUrl = (id: string) => `${url(id)}/files.zip`;

/** The first `limit` bytes of a file as text; `null` for a binary file. */
export async function getFileHead(id: string, name: string, limit: number, options: Options = {}): Promise<string | null> {
  const address = previewUrl(id, name);
  const response = await fetch(address, { headers: { range: `bytes=0-${limit - 1}` }, signal: options.signal ?? null });
  if (response.status === 416) return ""; // an empty file has no byte 0
  if (!response.ok) await request("GET", address, undefined, options); // throws the server's error message
  const bytes = new Uint8Array(await response.arrayBuffer()).subarray(0, limit);
  if (bytes.subarray(0, 8000).includes(0)) return null;
  return new TextDecoder().decode(bytes);
}
