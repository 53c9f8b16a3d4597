// What logged values mean as pictures: from the SDK's shapes to numbers to draw.

import type { Logged } from "../api";

export interface Sheet {
  columns: string[];
  rows: unknown[][];
}

/** Rows and tables of one name, one behind the other. A column that one of them lacks is empty there. */
export function sheetOf(values: Logged[]): Sheet {
  const columns: string[] = [];
  const rows: unknown[][] = [];
  for (const { value } of values) {
    const cells = Object.entries(asObject(value)).map(([name, cell]) => [name, asList(cell)] as const);
    for (const [name] of cells) if (!columns.includes(name)) columns.push(name);
    const length = Math.max(0, ...cells.map(([, list]) => list.length));
    for (let i = 0; i < length; i++) {
      const row: unknown[] = columns.map(() => null);
      for (const [name, list] of cells) row[columns.indexOf(name)] = list[i] ?? null;
      rows.push(row);
    }
  }
  return { columns, rows: rows.map((row) => columns.map((_, i) => row[i] ?? null)) };
}

export interface Matrix {
  labels: string[];
  cells: number[][];
  shares: number[][]; // of all that truly are of that row's class
}

export function matrixOf(value: unknown): Matrix | null {
  const { class_labels, matrix } = asObject(value);
  const cells = asList(matrix).map((row) => asList(row).map(asNumber));
  if (!cells.length) return null;
  const labels = asList(class_labels).map(String);
  const shares = cells.map((row) => {
    const whole = row.reduce((sum, cell) => sum + cell, 0);
    return row.map((cell) => (whole > 0 ? cell / whole : 0));
  });
  return { labels: cells.map((_, i) => labels[i] ?? String(i)), cells, shares };
}

export interface RatedCurve {
  label: string;
  points: [number, number][];
  area: number;
}

/** Per class: how many are found against how many are taken for it wrongly, as the threshold goes down. */
export function rocOf(value: unknown): RatedCurve[] {
  return curvesOf(value, ([tp, fp, tn, fn]) => [share(fp, fp + tn), share(tp, tp + fn)]).map(({ label, points }) => {
    const whole = [[0, 0], ...rising(points), [1, 1]] as [number, number][];
    return { label, points: whole, area: areaBelow(whole) };
  });
}

/** Per class: how many of those taken for it are it, against how many are found. */
export function precisionRecallOf(value: unknown): RatedCurve[] {
  return curvesOf(value, ([tp, fp, , fn]) => (tp + fp > 0 ? [share(tp, tp + fn), tp / (tp + fp)] : null)).map(
    ({ label, points }) => {
      const whole = rising(points);
      return { label, points: whole, area: areaBelow(whole) };
    },
  );
}

export interface Bar {
  from: number;
  to: number;
  count: number;
}

export function barsOf(value: unknown): Bar[] {
  const { bin_edges, bin_counts } = asObject(value);
  const edges = asList(bin_edges).map(asNumber);
  const counts = asList(bin_counts).map(asNumber);
  return counts
    .map((count, i) => ({ from: edges[i] ?? i, to: edges[i + 1] ?? (edges[i] ?? i) + 1, count }))
    .filter(({ from, to, count }) => [from, to, count].every(Number.isFinite));
}

export interface Whisker {
  x: number;
  y: number;
  error: number;
  count: number;
}

/** Predicted against true: for each bin of true values the mean prediction and how far they scatter. */
export function predictionsOf(value: unknown): Whisker[] {
  const { bin_edges, bin_averages, bin_errors, bin_counts } = asObject(value);
  const edges = asList(bin_edges).map(asNumber);
  const errors = asList(bin_errors).map(asNumber);
  const counts = asList(bin_counts).map(asNumber);
  return asList(bin_averages)
    .map(asNumber)
    .map((y, i) => {
      const from = edges[i] ?? NaN;
      const x = i + 1 < edges.length ? (from + edges[i + 1]!) / 2 : from;
      return { x, y, error: errors[i] ?? 0, count: counts[i] ?? 0 };
    })
    .filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
}

export function asNumber(value: unknown): number {
  if (typeof value === "number") return value;
  return value === "Infinity" ? Infinity : value === "-Infinity" ? -Infinity : NaN;
}

type Four = [number, number, number, number];

function curvesOf(value: unknown, place: (counts: Four) => [number, number] | null): { label: string; points: [number, number][] }[] {
  const { class_labels, probability_tables } = asObject(value);
  const labels = asList(class_labels).map(String);
  return asList(probability_tables).map((table, i) => ({
    label: labels[i] ?? String(i),
    points: asList(table).flatMap((counts) => {
      const four = asList(counts).map(asNumber);
      const found = four.length >= 4 ? place(four as Four) : null;
      return found ? [found] : [];
    }),
  }));
}

/** In the order of the thresholds, from left to right. Sorted by x, points above each other would become a zigzag. */
function rising(points: [number, number][]): [number, number][] {
  const finite = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  return finite.length && finite[0]![0] > finite[finite.length - 1]![0] ? finite.reverse() : finite;
}

function areaBelow(points: [number, number][]): number {
  let area = 0;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1]!;
    const [x1, y1] = points[i]!;
    area += ((x1 - x0) * (y0 + y1)) / 2;
  }
  return area;
}

function share(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

/** Some scripts log the whole v1 document, with its schema around the data. */
function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const found = value as Record<string, unknown>;
  const inner = found["schema_type"] !== undefined ? found["data"] : null;
  return typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : found;
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
