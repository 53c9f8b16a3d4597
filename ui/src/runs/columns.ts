// The columns of the table of runs: those that every run has, and one for each parameter, metric and tag.

import type { Field, Row, Value } from "../api/types";
import { number } from "../format/number";
import { ago, dateTime, duration } from "../format/time";

export type Kind = "status" | "run" | "experiment" | "text" | "number" | "time" | "duration" | "tags";
export type Group = "Run" | "Parameters" | "Metrics" | "Tags";

export interface Column {
  name: string; // as the yard's `sort` and query language say it
  title: string;
  kind: Kind;
  group: Group;
  width: number;
  sortable: boolean;
}

const own = (name: string, title: string, kind: Kind, width: number, sortable = true): Column => ({
  name,
  title,
  kind,
  group: "Run",
  width,
  sortable,
});

export const OWN: readonly Column[] = [
  own("status", "Status", "status", 116),
  own("name", "Run", "run", 248),
  own("experiment", "Experiment", "experiment", 136),
  own("created_at", "Submitted", "time", 104),
  own("duration_s", "Duration", "duration", 106),
  own("reason", "What happened", "text", 200, false),
  own("target", "Compute", "text", 104),
  own("submitted_by", "By", "text", 96),
  own("started_at", "Started", "time", 108),
  own("ended_at", "Ended", "time", 108),
  own("nodes", "Nodes", "number", 76),
  own("ranks", "Processes", "number", 96),
  own("type", "Kind", "text", 96),
  own("number", "Number", "number", 84),
  own("run_id", "Id", "text", 240),
  own("tags", "Tags", "tags", 220, false),
];

export const BOX = 40; // the column of boxes to choose runs by
const MOST_EACH = 4;
const ALWAYS = ["status", "name", "experiment", "created_at", "duration_s"];
const PREFIXES: [string, Group][] = [
  ["params.", "Parameters"],
  ["metrics.", "Metrics"],
  ["tags.", "Tags"],
];

export function columnOf(name: string, fields: readonly Field[]): Column {
  const known = OWN.find((column) => column.name === name);
  if (known) return known;
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

/** Every column that could be shown, in the order of the chooser. */
export function allColumns(fields: readonly Field[]): Column[] {
  const named = fields.filter((f) => PREFIXES.some(([prefix]) => f.name.startsWith(prefix)));
  const found = named.map((f) => columnOf(f.name, fields));
  return [...OWN, ...PREFIXES.flatMap(([, group]) => found.filter((c) => c.group === group))];
}

/**
 * What a newcomer sees: the run itself, then what most runs were given and what most brought, by turns, as many as there
 * is room for in `width` pixels.
 */
export function defaultColumns(fields: readonly Field[], width: number): string[] {
  const most = (prefix: string): string[] =>
    fields
      .filter((f) => f.name.startsWith(prefix) && f.runs > 0)
      .map((f, at) => ({ f, at }))
      .sort((a, b) => b.f.runs - a.f.runs || a.at - b.at)
      .map(({ f }) => f.name);
  const wide = (name: string): number => columnOf(name, fields).width;
  let left = width - [...ALWAYS, "reason"].reduce((sum, name) => sum + wide(name), BOX);
  const chosen = { "params.": [] as string[], "metrics.": [] as string[] };
  const offered = { "params.": most("params."), "metrics.": most("metrics.") };
  for (let turn = 0; turn < 2 * MOST_EACH; turn += 1) {
    const prefix = turn % 2 === 0 ? "params." : "metrics.";
    const name = offered[prefix].shift();
    if (name === undefined) continue;
    left -= wide(name);
    if (left < 0 && turn >= 2) break; // one of each is shown on any screen
    chosen[prefix].push(name);
  }
  return [...ALWAYS, ...chosen["params."], ...chosen["metrics."], "reason"];
}

/** Names may hold commas, which part them in the address. */
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

/** What stands in a cell. */
export function cellText(row: Row, column: Column, now: number): string {
  if (column.kind === "run") return title(row);
  if (column.kind === "duration") return duration(lasted(row, now));
  const value = valueOf(row, column.name);
  if (column.kind === "time") return typeof value === "number" ? ago(value, now) : "";
  if (typeof value === "number") return number(value);
  return value === null ? "" : String(value);
}

/** All of it, for those who point at the cell. */
export function cellTitle(row: Row, column: Column, now: number): string {
  if (column.kind === "run") return row.run_id;
  if (column.kind === "time") return dateTime(valueOf(row, column.name) as number | null);
  if (column.kind === "duration") return row.started_at === null ? "not started" : `since ${dateTime(row.started_at)}`;
  const value = valueOf(row, column.name);
  return typeof value === "number" ? String(value) : cellText(row, column, now);
}

export function title(row: Pick<Row, "display_name" | "name" | "run_id">): string {
  return row.display_name || row.name || row.run_id;
}

/** How long a run took, or has been going on. */
export function lasted(row: Row, now: number): number | null {
  if (row.started_at === null) return null;
  if (row.ended_at !== null) return row.duration_s ?? row.ended_at - row.started_at;
  return Math.max(0, now - row.started_at);
}
