// Differences between runs, and the fields that are useful as axes.

import { isNumeric, type Row, type Value } from "../api/types";
import { valueOf } from "../runs/columns";

export interface Line {
  name: string; // "params.lr"
  title: string;
  values: Value[]; // one per run
  differs: boolean;
}

export interface LineGroup {
  title: string;
  lines: Line[];
}

const RUN_FIELDS: [string, string][] = [
  ["status", "Status"],
  ["experiment", "Experiment"],
  ["duration_s", "Duration"],
  ["target", "Compute"],
  ["nodes", "Nodes"],
  ["ranks", "Processes"],
  ["submitted_by", "Submitted by"],
  ["reason", "Details"],
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
  const run = { title: "Run", lines: RUN_FIELDS.map(([name, title]) => line(name, title)) };
  return [group("Parameters", "params"), group("Metrics", "metrics"), group("Tags", "tags"), run];
}

export function namesOf(rows: readonly Row[], group: "params" | "metrics" | "tags"): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(row[group])))].sort(compareNatural);
}

/** The metrics that can be charted. */
export function chartableNames(rows: readonly Row[]): string[] {
  return namesOf(rows, "metrics").filter((name) => rows.some((row) => isNumeric(row.metrics[name])));
}

/** "+12 %" relative to the first run; empty if that is not meaningful. */
export function change(value: Value, first: Value): string {
  if (typeof value !== "number" || typeof first !== "number" || first === 0 || value === first) return "";
  const ratio = (value - first) / Math.abs(first);
  if (!Number.isFinite(ratio)) return "";
  if (Math.abs(ratio) >= 10) return `×${(value / first).toPrecision(3)}`;
  const percent = ratio * 100;
  const digits = Math.abs(percent) < 10 ? 1 : 0;
  return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(digits)} %`;
}

/** The fields that differ, parameters first, then metrics. */
export function axisNames(rows: readonly Row[]): string[] {
  return differences(rows)
    .filter((group) => group.title === "Parameters" || group.title === "Metrics")
    .flatMap((group) => group.lines)
    .filter((line) => line.differs)
    .map((line) => line.name);
}

export function compareNatural(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
