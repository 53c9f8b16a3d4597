// Runs: the table, its fields, its completions; what can be done to a run.

import { getJson, part, query, sendJson, type Options } from "./http";
import type { Completion, Field, RunView, Table } from "./shapes";

export interface TableQuery {
  query: string;
  sort: string;
  offset: number;
  limit: number;
}

export function table(asked: TableQuery, options: Options = {}): Promise<Table> {
  return getJson(`/api/runs/table${query({ ...asked })}`, options);
}

export async function fields(options: Options = {}): Promise<Field[]> {
  return (await getJson<{ fields: Field[] }>("/api/runs/fields", options)).fields;
}

export function complete(text: string, at: number, options: Options = {}): Promise<Completion> {
  return getJson(`/api/runs/complete${query({ query: text, at })}`, options);
}

export function cancel(id: string): Promise<RunView> {
  return sendJson("POST", `/api/runs/${part(id)}/cancel`);
}
