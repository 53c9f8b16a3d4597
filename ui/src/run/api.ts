// What the page of a run asks the yard for.

import { ask, getBytes, getJson, getText, part, parts, query, sendJson, type Options } from "../api/http";
import type { CodeChange, PackageChange, RunView, Series, Table, Value } from "../api/types";

export interface Log {
  name: string;
  size: number;
  rank: number | null;
  role: string | null;
  node: string | null;
}

export interface Hit {
  offset: number;
  line: number;
  text: string;
}

export interface FileEntry {
  name: string;
  size: number;
}

export interface Phase {
  phase: string;
  from: number;
  to: number | null;
}

export interface Process {
  rank: number | null;
  role: string | null;
  node: string | null;
  argv: string[];
  variables: Record<string, string>;
  log: string | null;
}

export interface Logged {
  step: number | null;
  time: number;
  rank: number | null;
  value: unknown;
}

export interface Values {
  name: string;
  kind: string;
  count: number;
  next: number;
  values: Logged[];
}

export interface BuiltEnvironment {
  key: string | null;
  lock: string | null;
  log: string | null;
}

const of = (id: string) => `/api/runs/${part(id)}`;

export const getRun = (id: string) => getJson<RunView>(of(id));
export const getSeries = (id: string) => getJson<Series[]>(`${of(id)}/series`);
export const getSystem = (id: string) => getJson<Series[]>(`${of(id)}/system`);
export const getTimeline = (id: string) => getJson<Phase[]>(`${of(id)}/timeline`);
export const getPlan = (id: string) => getJson<Process[]>(`${of(id)}/plan`);
export const getLogs = (id: string) => getJson<Log[]>(`${of(id)}/logs`);
export const getFiles = (id: string) => getJson<FileEntry[]>(`${of(id)}/files`);
export const getEnvironment = (id: string) => getJson<BuiltEnvironment>(`${of(id)}/environment`);
export const cancelRun = (id: string) => sendJson<RunView>("POST", `${of(id)}/cancel`);
export const rerun = (id: string) => sendJson<RunView>("POST", `${of(id)}/rerun`);

export const getValues = (id: string, name: string, after = 0, limit = 1000) =>
  getJson<Values>(`${of(id)}/values/${parts(name)}${query({ after, limit })}`);

export const setTags = (id: string, set: Record<string, string | null>, remove: string[] = []) =>
  sendJson<RunView>("PATCH", `${of(id)}/tags`, { set, remove });

export const getCode = async (id: string): Promise<FileEntry[]> =>
  (await getJson<{ path: string; size: number }[]>(`${of(id)}/code`)).map(({ path, size }) => ({ name: path, size }));

export const getCodeFile = (id: string, path: string, options?: Options) =>
  getText(`${of(id)}/code/${parts(path)}`, options);

export const diffCode = (a: string, b: string) => getJson<CodeChange[]>(`/api/diff/code${query({ a, b })}`);
export const diffEnvironments = (a: string, b: string) =>
  getJson<PackageChange[]>(`/api/diff/environment${query({ a, b })}`);

/** Parameters as the table of runs has them: parsed, of scripts and of MLflow alike. */
export async function getParams(id: string): Promise<Record<string, Value>> {
  const { rows } = await getJson<Table>(`/api/runs/table${query({ query: `id:${JSON.stringify(id)}`, limit: 1 })}`);
  return rows[0]?.run_id === id ? rows[0].params : {};
}

export async function getLogBytes(id: string, name: string, from: number, limit: number): Promise<Uint8Array> {
  return (await getBytes(`${of(id)}/logs/${parts(name)}${query({ from, limit })}`)).bytes;
}

export const searchLog = (id: string, name: string, text: string, limit: number, options?: Options) =>
  getJson<Hit[]>(`${of(id)}/logs/${parts(name)}/search${query({ text, limit })}`, options);

export const logAddress = (id: string, name: string) => `${of(id)}/logs/${parts(name)}`;
export const fileAddress = (id: string, name: string) => `${of(id)}/files/${parts(name)}`;
export const previewAddress = (id: string, name: string) => `${fileAddress(id, name)}?inline=1`;
export const zipAddress = (id: string) => `${of(id)}/files.zip`;

/** The beginning of a file as text; `null` when its bytes are none. */
export async function getFileHead(id: string, name: string, most: number, options: Options = {}): Promise<string | null> {
  const address = previewAddress(id, name);
  const answer = options.signal
    ? await fetch(address, { headers: { range: `bytes=0-${most - 1}` }, signal: options.signal })
    : await fetch(address, { headers: { range: `bytes=0-${most - 1}` } });
  if (answer.status === 416) return ""; // an empty file has no byte 0
  if (!answer.ok) await ask("GET", address, undefined, options); // which tells what is wrong
  const bytes = new Uint8Array(await answer.arrayBuffer()).subarray(0, most);
  if (bytes.subarray(0, 8000).includes(0)) return null;
  return new TextDecoder().decode(bytes);
}
