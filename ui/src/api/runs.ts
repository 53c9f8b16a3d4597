// Runs: the table, its fields, its completions; what can be done to a run.

import { getJson, part, query, sendJson, type Options } from "./http";
import { lettersTo, placeAfter } from "./codepoints";
import type { Completion, Field, RunView, Table } from "./types";

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

export async function complete(text: string, at: number, options: Options = {}): Promise<Completion> {
  const asked = query({ query: text, at: lettersTo(text, at) });
  const got = await getJson<Completion>(`/api/runs/complete${asked}`, options);
  return { ...got, from: placeAfter(text, got.from), to: placeAfter(text, got.to) };
}

export function cancel(id: string): Promise<RunView> {
  return sendJson("POST", `/api/runs/${part(id)}/cancel`);
}
