// The columns of the runs table: common ones, and one for each parameter, metric and tag.

import type { Field, Row, Value } from "../api/types";
import { number } from "../format/number";
import { ago, dateTime, duration } from "../format/time";

export type Kind = "status" | "run" | "experiment" | "text" | "number" | "time" | "duration" | "tags";
export type Group = "Run" | "Parameters" | "Metrics" | "Tags";

export interface Column {
  name: string; // as in the `sort` parameter and the query language
  title: string;
  kind: Kind;
  group: Group;
  width: number;
  sortable: boolean;
}

const column = (name: string, title: string, kind: Kind, width: number, sortable = true): Column => ({
  name,
  title,
  kind,
  group: "Run",
  width,
  sortable,
});

export const RUN_COLUMNS: readonly Column[] = [
  column("status", "Status", "status", 116),
  column("name", "Run", "run", 248),
  column("experiment", "Experiment", "experiment", 136),
  column("created_at", "Submitted", "time", 104),
  column("duration_s", "Duration", "duration", 106),
  column("reason", "Details", "text", 200, false),
  column("target", "Compute", "text", 104),
  column("submitted_by", "Submitted by", "text", 110),
  column("started_at", "Started", "time", 108),
  column("ended_at", "Ended", "time", 108),
  column("nodes", "Nodes", "number", 76),
  column("ranks", "Processes", "number", 96),
  column("type", "Type", "text", 96),
  column("number", "Number", "number", 84),
  column("run_id", "ID", "text", 240),
  column("tags", "Tags", "tags", 220, false),
];

export const CHECKBOX_WIDTH = 40;
const MAX_EACH = 4;
const ALWAYS = ["status", "name", "experiment", "created_at", "duration_s"];
const PREFIXES: [string, Group][] = [
  ["params.", "Parameters"],
  ["metrics.", "Metrics"],
  ["tags.", "Tags"],
];

export function columnOf(name: string, fields: readonly Field[]): Column {
  const runColumn = RUN_COLUMNS.find((candidate) => candidate.name === name);
  if (runColumn) return runColumn;
  for (const [prefix, group] of PREFIXES) {
    if (!name.startsWith(prefix)) continue;
    const field = fields.find((f) => f.name === name);
    const kind = group === "Metrics" || field?.kind === "number" ? "number" : "text";
    const title = name.slice(prefix.length);
    const width = Math.min(200, Math.max(kind === "number" ? 92 : 104, 34 + title.length * 7.2));
    return { name, title, kind, group, width, sortable: true };
  }
  return { name, title: name, kind: "text", group: "Run", width: 120, sortable: false };
}

/** All available columns, in the order of the column chooser. */
export function allColumns(fields: readonly Field[]): Column[] {
  const dynamicFields = fields.filter((f) => PREFIXES.some(([prefix]) => f.name.startsWith(prefix)));
  const dynamicColumns = dynamicFields.map((f) => columnOf(f.name, fields));
  return [...RUN_COLUMNS, ...PREFIXES.flatMap(([, group]) => dynamicColumns.filter((c) => c.group === group))];
}

/**
 * The default columns: common ones, then the parameters and metrics that most runs have, as many as fit into `width`
 * pixels.
 */
export function defaultColumns(fields: readonly Field[], width: number): string[] {
  const mostCommon = (prefix: string): string[] =>
    fields
      .filter((f) => f.name.startsWith(prefix) && f.runs > 0)
      .map((f, index) => ({ f, index }))
      .sort((a, b) => b.f.runs - a.f.runs || a.index - b.index)
      .map(({ f }) => f.name);
  const widthOf = (name: string): number => columnOf(name, fields).width;
  let remaining = width - [...ALWAYS, "reason"].reduce((sum, name) => sum + widthOf(name), CHECKBOX_WIDTH);
  const selected = { "params.": [] as string[], "metrics.": [] as string[] };
  const candidates = { "params.": mostCommon("params."), "metrics.": mostCommon("metrics.") };
  for (let turn = 0; turn < 2 * MAX_EACH; turn += 1) {
    const prefix = turn % 2 === 0 ? "params." : "metrics.";
    const name = candidates[prefix].shift();
    if (name === undefined) continue;
    remaining -= widthOf(name);
    if (remaining < 0 && turn >= 2) break; // at least one of each
    selected[prefix].push(name);
  }
  return [...ALWAYS, ...selected["params."], ...selected["metrics."], "reason"];
}

/** Joins names with commas; commas in names are escaped. */
export function columnsToText(names: readonly string[]): string {
  return names.map((name) => name.replaceAll("~", "~~").replaceAll(",", "~.")).join(",");
}

export function columnsFromText(text: string): string[] {
  const names = text.split(",").map((name) => name.replace(/~[~.]/g, (pair) => (pair === "~~" ? "~" : ",")));
  return [...new Set(names.filter(Boolean))];
}

export function valueOf(row: Row, name: string): Value {
  if (name.startsWith("params.")) return row.params[name.slice(7)] ?? null;
  if (name.startsWith("metrics.")) return row.metrics[name.slice(8)] ?? null;
  if (name.startsWith("tags.")) return row.tags[name.slice(5)] ?? null;
  const value = (row as unknown as Record<string, unknown>)[name];
  return typeof value === "object" || value === undefined ? null : (value as Value);
}

/** The text of a cell. */
export function cellText(row: Row, column: Column, now: number): string {
  if (column.kind === "run") return title(row);
  if (column.kind === "duration") return duration(runDuration(row, now));
  const value = valueOf(row, column.name);
  if (column.kind === "time") return typeof value === "number" ? ago(value, now) : "";
  if (typeof value === "number") return number(value);
  return value === null ? "" : String(value);
}

/** The tooltip of a cell: the full value. */
export function cellTitle(row: Row, column: Column, now: number): string {
  if (column.kind === "run") return row.run_id;
  if (column.kind === "time") return dateTime(valueOf(row, column.name) as number | null);
  if (column.kind === "duration") return row.started_at === null ? "not started" : `started ${dateTime(row.started_at)}`;
  const value = valueOf(row, column.name);
  return typeof value === "number" ? String(value) : cellText(row, column, now);
}

export function title(row: Pick<Row, "display_name" | "name" | "run_id">): string {
  return row.display_name || row.name || row.run_id;
}

/** The duration of a run, up to now if it is not finished. */
export function runDuration(row: Row, now: number): number | null {
  if (row.started_at === null) return null;
  if (row.ended_at !== null) return row.duration_s ?? row.ended_at - row.started_at;
  return Math.max(0, now - row.started_at);
}
