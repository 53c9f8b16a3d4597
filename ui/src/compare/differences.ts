// What differs between runs, and how they can be put on axes. Pure.

import type { Row, Value } from "../api/types";
import { valueOf } from "../runs/columns";

export interface Line {
  name: string; // "params.lr"
  title: string;
  values: Value[]; // one for each run
  differs: boolean;
}

export interface LineGroup {
  title: string;
  lines: Line[];
}

const OWN: [string, string][] = [
  ["status", "Status"],
  ["experiment", "Experiment"],
  ["duration_s", "Duration"],
  ["target", "Compute"],
  ["nodes", "Nodes"],
  ["ranks", "Processes"],
  ["submitted_by", "By"],
  ["reason", "What happened"],
];

export function differences(rows: readonly Row[]): LineGroup[] {
  const line = (name: string, title: string): Line => {
    const values = rows.map((row) => valueOf(row, name));
    return { name, title, values, differs: new Set(values.map((value) => JSON.stringify(value))).size > 1 };
  };
  const group = (title: string, prefix: "params" | "metrics" | "tags"): LineGroup => ({
    title,
    lines: namesOf(rows, prefix).map((name) => line(`${prefix}.${name}`, name)),
  });
  const own = { title: "Run", lines: OWN.map(([name, title]) => line(name, title)) };
  return [group("Parameters", "params"), group("Metrics", "metrics"), group("Tags", "tags"), own];
}

export function namesOf(rows: readonly Row[], group: "params" | "metrics" | "tags"): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row[group])))].sort(byWords);
}

/** The names of metrics that can be drawn as lines over steps. */
export function chartedNames(rows: readonly Row[]): string[] {
  return namesOf(rows, "metrics").filter((name) => rows.some((row) => isNumeric(row.metrics[name])));
}

/** A number as such, or one of the texts that stand for numbers which JSON does not have. */
export function isNumeric(value: Value | undefined): boolean {
  return typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity";
}

/** "+12 %" against the first run; nothing where that says nothing. */
export function change(value: Value, first: Value): string {
  if (typeof value !== "number" || typeof first !== "number" || first === 0 || value === first) return "";
  const part = (value - first) / Math.abs(first);
  if (!Number.isFinite(part)) return "";
  if (Math.abs(part) >= 10) return `×${(value / first).toPrecision(3)}`;
  const percent = part * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(digits)} %`;
}

/** Fields that are worth an axis: those that differ, parameters first, then metrics. */
export function axisNames(rows: readonly Row[]): string[] {
  return differences(rows)
    .filter((group) => group.title === "Parameters" || group.title === "Metrics")
    .flatMap((group) => group.lines)
    .filter((line) => line.differs)
    .map((line) => line.name);
}

export function byWords(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
