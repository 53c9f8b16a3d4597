// Requests about the table of runs.

import { lengthInCodepoints, utf16Index } from "./codepoints";
import { getJson, part, queryString, sendJson, type Options } from "./http";
import type { Completion, Field, RunView, Schemas, Table } from "./types";

export interface TableQuery {
  query: string;
  sort: string;
  offset: number;
  limit: number;
}

export const getTable = (query: TableQuery, options: Options = {}) =>
  getJson<Table>(`/api/runs/table${queryString({ ...query })}`, options);

export const getFields = async (options: Options = {}): Promise<Field[]> =>
  (await getJson<Schemas["FieldList"]>("/api/runs/fields", options)).fields;

export async function complete(text: string, caret: number, options: Options = {}): Promise<Completion> {
  const params = queryString({ query: text, at: lengthInCodepoints(text, caret) });
  const completion = await getJson<Completion>(`/api/runs/complete${params}`, options);
  return { ...completion, from: utf16Index(text, completion.from), to: utf16Index(text, completion.to) };
}

export const cancelRun = (id: string) => sendJson<RunView>("POST", `/api/runs/${part(id)}/cancel`);
