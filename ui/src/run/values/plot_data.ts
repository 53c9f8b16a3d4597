// Converts values in the SDK's formats to plot data.

import type { LoggedValue } from "../api";

export interface TableData {
  columns: string[];
  rows: unknown[][];
}

/** Concatenates logged rows and tables; missing columns are empty. */
export function mergeTables(values: LoggedValue[]): TableData {
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
  shares: number[][]; // relative to the row, which is the true class
}

export function parseMatrix(value: unknown): Matrix | null {
  const { class_labels, matrix } = asObject(value);
  const cells = asList(matrix).map((row) => asList(row).map(asNumber));
  if (!cells.length) return null;
  const labels = asList(class_labels).map(String);
  const shares = cells.map((row) => {
    const total = row.reduce((sum, cell) => sum + cell, 0);
    return row.map((cell) => (total > 0 ? cell / total : 0));
  });
  return { labels: cells.map((_, i) => labels[i] ?? String(i)), cells, shares };
}

export interface RatedCurve {
  label: string;
  points: [number, number][];
  area: number;
}

/** Per class: true positive rate over false positive rate. */
export function rocCurves(value: unknown): RatedCurve[] {
  return curvesOf(value, ([tp, fp, tn, fn]) => [ratio(fp, fp + tn), ratio(tp, tp + fn)]).map(({ label, points }) => {
    const curve = [[0, 0], ...leftToRight(points), [1, 1]] as [number, number][];
    return { label, points: curve, area: areaBelow(curve) };
  });
}

/** Per class: precision over recall. */
export function precisionRecallCurves(value: unknown): RatedCurve[] {
  return curvesOf(value, ([tp, fp, , fn]) => (tp + fp > 0 ? [ratio(tp, tp + fn), tp / (tp + fp)] : null)).map(
    ({ label, points }) => {
      const curve = leftToRight(points);
      return { label, points: curve, area: areaBelow(curve) };
    },
  );
}

export interface Bar {
  from: number;
  to: number;
  count: number;
}

export function parseBins(value: unknown): Bar[] {
  const { bin_edges, bin_counts } = asObject(value);
  const edges = asList(bin_edges).map(asNumber);
  const counts = asList(bin_counts).map(asNumber);
  return counts
    .map((count, i) => ({ from: edges[i] ?? i, to: edges[i + 1] ?? (edges[i] ?? i) + 1, count }))
    .filter(({ from, to, count }) => [from, to, count].every(Number.isFinite));
}

export interface ErrorBar {
  x: number;
  y: number;
  error: number;
  count: number;
}

/** Mean prediction and error for each bin of true values. */
export function parsePredictions(value: unknown): ErrorBar[] {
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

type Counts = [tp: number, fp: number, tn: number, fn: number];

function curvesOf(value: unknown, toPoint: (counts: Counts) => [number, number] | null): { label: string; points: [number, number][] }[] {
  const { class_labels, probability_tables } = asObject(value);
  const labels = asList(class_labels).map(String);
  return asList(probability_tables).map((table, i) => ({
    label: labels[i] ?? String(i),
    points: asList(table).flatMap((counts) => {
      const numbers = asList(counts).map(asNumber);
      const point = numbers.length >= 4 ? toPoint(numbers as Counts) : null;
      return point ? [point] : [];
    }),
  }));
}

/** Ordered by threshold, from left to right. Sorting by x would make a zigzag of points with equal x. */
function leftToRight(points: [number, number][]): [number, number][] {
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

function ratio(part: number, total: number): number {
  return total > 0 ? part / total : 0;
}

/** The object itself, or its `data` if the script logged the v1 document with its schema. */
function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const object = value as Record<string, unknown>;
  const inner = object["schema_type"] !== undefined ? object["data"] : null;
  return typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : object;
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
